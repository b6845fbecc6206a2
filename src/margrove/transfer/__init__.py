"""Pretrained convolutional networks with a support vector machine, a tree or softmax as the last layer.

============  =================================================================================
pictures      files, folders, arrays and PIL images
preparation   pictures as a network takes them: resized, cropped, normalised
networks      a network by name, as a module or as an ONNX file, cut before its classifier
features      `ConvFeatures`: pictures to codes, or to named maps for a tree
fine_tuned    `FineTuned`: a new last layer, and further training of the network
softmax       `SoftmaxClassifier`: the usual last layer, beside the SVM and the tree
============  =================================================================================

Neither torch nor ONNX Runtime is imported before a network is used.
"""
