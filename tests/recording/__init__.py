"""What a TorchDispatchMode sees, beside PyTorch's: sequences of operators, recorded calls issued again, fake tensors."""
