"""Programs that use tilewright's public interface. Start with `demo`."""
