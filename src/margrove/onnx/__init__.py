"""Models as ONNX graphs: what is the same for every learner. Each family writes the operators of its own learners in
its module ``onnx``, which the registry (`margrove.learner`) names.

==========  ==================================================================
graph       operators and constants; arithmetic with tensors
table       the inputs: columns by name, or one matrix
prediction  the outputs, and the formulas that several families use
model       any fitted model, pipelines too, as an ONNX model
file        `write_onnx` and `onnx_inputs`
==========  ==================================================================
"""
