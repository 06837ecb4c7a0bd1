"""PyTorch's checkpoint format: archive reader and writer, and the pickle interpreter. Imported on first use."""
