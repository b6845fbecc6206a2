"""Max margin: support vector machines, and the kernels, which the kernel perceptron shares."""
