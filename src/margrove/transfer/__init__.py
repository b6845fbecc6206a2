"""Pretrained convolutional networks under a margin or a tree (THEORY X1–X3).

============  =================================================================================
pictures      what comes in: files, folders, arrays, PIL images
preparation   what a network wants to see: resized, cropped, normalised
networks      a network by name, as a module or as an ONNX file, cut before its classifier
features      `ConvFeatures`: pictures in, codes out (X1), as named maps for a tree (X3)
fine_tuned    `FineTuned`: a new last layer, the later layers trained on (X2)
softmax       `SoftmaxClassifier`: the usual last layer, beside the SVM and the tree
============  =================================================================================

Neither torch nor ONNX Runtime is imported before a network is used.
"""
