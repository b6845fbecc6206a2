"""Max margin. So far its kernels, which the kernel perceptron shares."""
