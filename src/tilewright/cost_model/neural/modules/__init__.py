"""The networks in torch, one a file: imported by what trains, never by what predicts."""
