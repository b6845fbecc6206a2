"""The command line. Every module here is a view of one fitted model and holds no mathematics."""
