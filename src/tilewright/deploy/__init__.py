"""A network ready to run: its memory plan, the compiled model, its file, the session, and C text to export."""
