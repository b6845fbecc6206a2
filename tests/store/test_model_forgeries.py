"""A forger knows the format and computes a digest that is right. What the file says is checked all the same."""

from __future__ import annotations

import io

import numpy as np
import pytest
from tests.store.forgeries import drop_tensor, entry, put, put_parameter, put_scalar, put_tensor, refuse

from margrove import BasicLinearClassifier, certify, load
from margrove.errors import MargroveError


def test_a_rewritten_valid_file_loads(perceptron, content, forged, loaded):
    """So the refusals below are not about the digest."""
    whole = content(perceptron)
    assert forged(whole, lambda header, tensors: None) == whole
    loaded(whole)


def drop(*path):
    def change(header, tensors):
        record = header["model"]
        for name in path[:-1]:
            record = record[name]
        del record[path[-1]]

    return change


def put_labels(dtype, values):
    return put(labels={"dtype": dtype, "values": values})


ON_PERCEPTRON = {
    "a class by import": (put(**{"class": "os.system"}), "'os.system', which is not a class"),
    "a class of sklearn's": (put(**{"class": "GradientBoostingClassifier"}), "not a class"),
    "a class that is a list": (put(**{"class": ["Perceptron"]}), "not a class"),
    "another class": (put(**{"class": "BasicLinearClassifier"}), "parameters has"),
    "no model": (lambda header, tensors: header.update(model=None), "not a class"),
    "no header field": (lambda header, tensors: header.pop("model"), "no 'model'"),
    "a strange header field": (lambda header, tensors: header.update(hook="x"), "'hook', which is unknown"),
    "a strange field": (put(__reduce__=["os.system", "true"]), "'__reduce__', which is unknown"),
    "an unknown parameter": (put_parameter(callback="x"), "'callback', which is unknown"),
    "a missing parameter": (drop("parameters", "eta0"), "no 'eta0'"),
    "a choice unknown": (put_parameter(variant="best"), "variant is 'best'; it must be one of last, averaged, voted"),
    "a flag as a number": (put_parameter(shuffle=1), "shuffle is 1; it must be one of True, False"),
    "a count of nothing": (put_parameter(n_iter_no_change=0), "n_iter_no_change is 0; a number from 1 to"),
    "half a count": (put_parameter(max_iter=1.5), "max_iter is 1.5; a number from 1 to"),
    "parameters as a list": (put(parameters=[]), "JSON object was expected"),
    "an unknown variant": (put_parameter(variant="best"), "variant is 'best'"),
    "a variant that is a list": (put_parameter(variant=["last"]), "variant is"),
    "a variant without its arrays": (put_parameter(variant="voted"), "has no 'makers_'"),
    "a parameter of text": (put_parameter(eta0="1"), "eta0 is '1'"),
    "a parameter without end": (put_parameter(eta0={"$float": "inf"}), "eta0 is inf"),
    "a parameter too large": (put_parameter(eta0=10**400), "eta0 is 1000"),
    "a strange mark": (put_parameter(tol={"$eval": "1"}), "not a value that a model file may contain"),
    "a strange float": (put_parameter(tol={"$float": "1e5"}), "not a value"),
    "a pair of three": (put_parameter(class_weight={"$dict": [[1, 2, 3]]}), "not a pair of key and value"),
    "threads beyond counting": (put_parameter(n_jobs=10**6), "n_jobs is 1000000"),
    "threads of text": (put_parameter(n_jobs="2"), "n_jobs is '2'"),
    "a key that is a list": (put_parameter(class_weight={"$dict": [[[1], 2]]}), "cannot be a key"),
    "a key that holds a list": (put_parameter(class_weight={"$dict": [[{"$tuple": [[1]]}, 2]]}), "cannot be a key"),
    "no labels": (put_labels("<i8", []), "not values of dtype"),
    "labels as objects": (put_labels("|O", [1, 2, 3]), "not values of dtype"),
    "labels as code": (put_labels("O,O", ["a", "b", "c"]), "dtype is 'O,O'"),
    "labels of void": (put_labels("|V8", ["a", "b", "c"]), "dtype is"),
    "labels of gigabytes": (put_labels("<U999999999", ["a", "b", "c"]), "would take"),
    "labels cut off": (put_labels("<U1", ["a", "bb", "c"]), "do not fit"),
    "labels too large": (put_labels("|i1", [1, 2, 300]), "do not fit"),
    "labels out of order": (put_labels("<i8", [0, 2, 1]), "not sorted and distinct"),
    "labels twice": (put_labels("<i8", [0, 1, 1]), "not sorted and distinct"),
    "labels that are no number": (put_labels("<f8", [0.0, 1.0, {"$float": "nan"}]), "do not fit|not sorted"),
    "labels of another kind": (put_labels("<i8", [0, 1, True]), "not values of dtype"),
    "labels bare": (put(labels=[0, 1, 2]), "a dtype and values were expected"),
    "two labels": (put_labels("<i8", [0, 1]), "coef_ has shape"),
    "four labels": (put_labels("<i8", [0, 1, 2, 3]), "coef_ has shape"),
    "other columns": (put(n_features_in=4), "coef_ has shape"),
    "no columns": (put(n_features_in=0), "n_features_in is 0"),
    "columns of text": (put(n_features_in="3"), "n_features_in is '3'"),
    "columns beyond counting": (put(n_features_in=2**70), "n_features_in is"),
    "names too few": (put(feature_names=["a", "b"]), "names of the columns"),
    "names twice": (put(feature_names=["a", "b", "b"]), "names of the columns"),
    "names of numbers": (put(feature_names=[1, 2, 3]), "names of the columns"),
    "a long list that is not there": (put(feature_names={"$tensor": "x"}), "the list 'x' is not in the file"),
    "a long list of weights": (put(feature_names={"$tensor": "coef_"}), "is not in the file"),
    "an unknown status": (put_scalar(status_="perfect"), "status_ is 'perfect'"),
    "an engine that is no name": (put_scalar(engine_="GPU 0"), "engine_ is 'GPU 0'"),
    "an engine that is no text": (put_scalar(engine_=["native"]), "engine_ is"),
    "passes below zero": (put_scalar(n_iter_=-1), "n_iter_ is -1"),
    "passes of a fraction": (put_scalar(n_iter_=1.5), "n_iter_ is 1.5"),
    "a truth value of text": (put_scalar(is_warm_="no"), "is_warm_ is 'no'"),
    "other rows": (put_scalar(n_rows_=41), "alpha_ has shape"),
    "no rows": (put_scalar(n_rows_=0), "n_rows_ is 0"),
    "a missing scalar": (drop("scalars", "n_iter_"), "no 'n_iter_'"),
    "a strange scalar": (put_scalar(exec_=1), "'exec_', which is unknown"),
    "a missing array": (drop_tensor("coef_"), "'coef_' is missing"),
    "an array not listed": (drop("arrays", "alpha_"), "array 'alpha_', which the model does not use"),
    "a needed array not listed": (drop("arrays", "coef_"), "no 'coef_'"),
    "arrays as a list": (put(arrays=[]), "JSON object was expected"),
    "a layout unknown": (put(arrays={"coef_": "Z"}), "no 'intercept_'|laid out"),
    "a layout of lists": (lambda header, tensors: header["model"]["arrays"].update(coef_=[]), "laid out as"),
    "a sparse layout": (lambda header, tensors: header["model"]["arrays"].update(coef_="csr_matrix"), "laid out as"),
    "one array more": (lambda header, tensors: tensors.update(x=np.zeros(1)), "array 'x', which"),
    "weights of one axis": (put_tensor("coef_", np.ravel), "coef_ has shape"),
    "weights of three axes": (put_tensor("coef_", lambda a: a[None]), "coef_ has shape"),
    "weights turned": (put_tensor("intercept_", lambda a: a[:, None]), "intercept_ has shape"),
    "weights of single precision": (put_tensor("coef_", lambda a: a.astype(np.float32)), "coef_ is of type float32"),
    "weights that are whole": (put_tensor("coef_", lambda a: a.astype(np.int64)), "coef_ is of type int64"),
    "weights of a type none has": (put_tensor("coef_", lambda a: a.astype(np.float16)), "is of type F16"),
    "weights that are no number": (
        put_tensor("coef_", entry((0, 0), np.nan)),
        "coef_ holds numbers that are not finite",
    ),
    "weights without end": (put_tensor("intercept_", entry(0, np.inf)), "not finite"),
    "counts below zero": (put_tensor("alpha_", entry((0, 0), -1.0)), "alpha_ goes down to -1"),
    "mistakes below zero": (put_tensor("n_mistakes_", entry(0, -1)), "n_mistakes_ goes down to -1"),
    "no certificate": (put(certificate=None), "certificate"),
    "a certificate in part": (drop("certificate", "claims"), "certificate"),
    "a certificate of others": (
        lambda header, tensors: header["model"]["certificate"].update(learner="SVC"),
        "certificate does not fit",
    ),
    "a certificate that says more": (
        lambda header, tensors: header["model"]["certificate"].update(signed="yes"),
        "certificate does not fit",
    ),
    "a certificate at odds with itself": (
        lambda header, tensors: header["model"]["certificate"].update(holds="perfectly"),
        "certificate does not fit",
    ),
    "a certificate of other machines": (
        lambda header, tensors: header["model"]["certificate"].update(machines=["a"]),
        "certificate does not fit",
    ),
    "a claim with more values": (
        lambda header, tensors: header["model"]["certificate"]["claims"][0].update(values=[0.0] * 9),
        "certificate does not fit",
    ),
}


@pytest.mark.parametrize("forgery", ON_PERCEPTRON)
def test_forged_perceptrons_are_refused(perceptron, content, forged, forgery):
    change, words = ON_PERCEPTRON[forgery]
    refuse(forged(content(perceptron), change), words)


ON_VOTED = {
    "makers beyond the rows": (put_tensor("makers_", entry(0, 40)), "makers_ goes up to 40; it must be below n = 40"),
    "makers below zero": (put_tensor("makers_", entry(0, -1)), "makers_ goes down to -1"),
    "times below zero": (put_tensor("times_", entry(0, -5)), "times_ goes down"),
    "starts that fall": (put_tensor("starts_", entry(1, 10**9)), "starts_ must rise from 0"),
    "starts after zero": (put_tensor("starts_", entry(0, 1)), "must rise from 0"),
    "starts that overflow": (put_tensor("starts_", entry(1, -(2**63))), "must rise"),
    "an end too late": (put_tensor("starts_", entry(-1, 10**6)), "must rise"),
    "one machine less": (put_tensor("starts_", lambda a: a[:-1]), "starts_ has shape"),
    "one time less": (put_tensor("times_", lambda a: a[:-1]), "times_ has shape"),
    "no offset": (put_tensor("prototypes_", lambda a: a[:, :-1]), "prototypes_ has shape"),
}


@pytest.mark.parametrize("forgery", ON_VOTED)
def test_forged_votes_are_refused(voted, content, forged, forgery):
    change, words = ON_VOTED[forgery]
    refuse(forged(content(voted), change), words)


ON_KERNEL = {
    "an unknown kernel": (put_parameter(kernel="eval"), "kernel is 'eval'"),
    "a kernel of another shape": (put_parameter(kernel="precomputed"), "support_vectors_ has shape"),
    "a degree of text": (put_parameter(degree="3"), "degree is '3'"),
    "a gamma below zero": (put_scalar(gamma_=-1.0), "gamma_ is -1.0"),
    "a gamma without end": (put_scalar(gamma_={"$float": "inf"}), "gamma_ is"),
    "support beyond the rows": (put_tensor("support_", entry(0, 40)), "support_ goes up to 40"),
    "support below zero": (put_tensor("support_", entry(0, -1)), "support_ goes down to -1"),
    "fewer coefficients": (put_tensor("dual_coef_", lambda a: a[:, :-1]), "dual_coef_ has shape"),
    "wider vectors": (put_tensor("support_vectors_", lambda a: a[:, :-1]), "support_vectors_ has shape"),
    "vectors that are no number": (put_tensor("support_vectors_", entry((0, 0), np.nan)), "not finite"),
    "a norm below zero": (put_tensor("norm_", entry(0, -1.0)), "norm_ goes down to -1"),
}


@pytest.mark.parametrize("forgery", ON_KERNEL)
def test_forged_kernel_models_are_refused(kernel_perceptron, content, forged, forgery):
    change, words = ON_KERNEL[forgery]
    refuse(forged(content(kernel_perceptron), change), words)


def test_forged_gram_models_are_refused(gram_perceptron, content, forged):
    """Support vectors of a Gram matrix are its columns: an index must be below both of its sides."""
    whole = content(gram_perceptron)
    refuse(forged(whole, put(n_features_in=10)), "support_ goes up to .* below d = 10")
    refuse(forged(whole, put_scalar(n_rows_=10)), "support_ goes up to .* below n = 10")


ON_SVC = {
    "a file for the next fit to write to": (put_parameter(checkpoint="/etc/passwd"), "checkpoint is .*; nothing was"),
    "an unknown kernel": (put_parameter(kernel="eval"), "kernel is 'eval'"),
    "a kernel of another shape": (put_parameter(kernel="precomputed"), "support_vectors_ has shape"),
    "a price below zero": (put_parameter(C=-1.0), "C is -1.0"),
    "a price of text": (put_parameter(C="1"), "C is '1'"),
    "a price that is no number": (put_parameter(C={"$float": "nan"}), "C is nan"),
    "a tolerance of text": (put_parameter(tol="1"), "tol is '1'"),
    "an unknown shape of decisions": (put_parameter(decision_function_shape="all"), "decision_function_shape is 'all'"),
    "ties of text": (put_parameter(break_ties="yes"), "break_ties is 'yes'"),
    "an unknown way to many classes": (put_parameter(multiclass="all"), "multiclass is 'all'"),
    "no way to many classes": (put_parameter(multiclass=None), "multiclass is NoneType"),
    "one against the rest": (put_parameter(multiclass="ovr"), "dual_coef_ has shape"),
    "a code of other machines": (put_parameter(multiclass=[[1], [1], [-1]]), "dual_coef_ has shape"),
    "a code of fewer labels": (
        put_parameter(multiclass=[[1], [-1]]),
        "multiclass has 2 rows, and the model has 3 labels",
    ),
    "a code of one side": (put_parameter(multiclass=[[1, 1], [1, -1], [0, 0]]), "column 0 has no −1"),
    "a code of other numbers": (put_parameter(multiclass=[[1], [2], [-1]]), "multiclass contains"),
    "a code of one axis": (put_parameter(multiclass=[1, -1, 0]), r"of shape \(3,\)"),
    "a code beyond counting": (put_parameter(multiclass=[[10**400]]), "multiclass is list"),
    "a code of ragged rows": (put_parameter(multiclass=[[1], [1, -1], [-1]]), "multiclass is list"),
    "a code of objects": (put_parameter(multiclass={"$array": ["|O", [[1], [1], [-1]]]}), "not an array of dtype"),
    "a code that is cut off": (
        put_parameter(multiclass={"$array": ["|i1", [[1], [1], [-257]]]}),
        "not an array of dtype",
    ),
    "a code of truth values": (put_parameter(multiclass={"$array": ["|i1", [[True]]]}), "not an array of dtype"),
    "a code of half an array": (
        put_parameter(multiclass={"$array": ["|i1"]}),
        "not a value that a model file may contain",
    ),
    "one label": (put_labels("<i8", [0]), "this one has only one"),
    "two labels": (put_labels("<i8", [0, 1]), "dual_coef_ has shape"),
    "labels for more machines than there is memory": (put_labels("<i8", list(range(100_000))), "dual_coef_ has shape"),
    "no labels": (put(labels=None), "a dtype and values were expected"),
    "a gamma below zero": (put_scalar(gamma_=-1.0), "gamma_ is -1.0"),
    "a bound above one": (put_scalar(loo_bound_=1.5), "loo_bound_ is 1.5; it must be at least 0, at most 1"),
    "a bound below zero": (put_scalar(xi_alpha_bound_=-0.5), "xi_alpha_bound_ is -0.5"),
    "a bound that is whole": (put_scalar(loo_bound_=1), "loo_bound_ is 1; a float was expected"),
    "steps as one number": (put_scalar(n_iter_=7), "'n_iter_', which is unknown"),
    "other rows": (put_scalar(n_rows_=41), "_grades has shape"),
    "support beyond the rows": (put_tensor("support_", entry(0, 40)), "support_ goes up to 40"),
    "support below zero": (put_tensor("support_", entry(0, -1)), "support_ goes down to -1"),
    "support of other whole numbers": (
        put_tensor("support_", lambda a: a.astype(np.int64)),
        "support_ is of type int64",
    ),
    "counts that do not add up": (put_tensor("n_support_", entry(0, 1)), "n_support_ sums to"),
    "counts below zero": (put_tensor("n_support_", entry(0, -1)), "n_support_ goes down to -1"),
    "counts that overflow": (put_tensor("n_support_", lambda a: a * 0 + (2**31 - 1)), "n_support_ sums to 6442450941"),
    "fewer coefficients": (put_tensor("dual_coef_", lambda a: a[:, :-1]), "dual_coef_ has shape"),
    "a row of coefficients more": (put_tensor("dual_coef_", lambda a: a[[0, 1, 1]]), "dual_coef_ has shape"),
    "coefficients without end": (put_tensor("dual_coef_", entry((0, 0), np.inf)), "not finite"),
    "one offset less": (put_tensor("intercept_", lambda a: a[:-1]), "intercept_ has shape"),
    "wider vectors": (put_tensor("support_vectors_", lambda a: a[:, :-1]), "support_vectors_ has shape"),
    "a norm below zero": (put_tensor("norm_", entry(0, -1.0)), "norm_ goes down to -1"),
    "a weight below zero": (put_tensor("class_weight_", entry(0, -1.0)), "class_weight_ goes down to -1"),
    "steps below zero": (put_tensor("n_iter_", entry(0, -1)), "n_iter_ goes down to -1"),
    "words that are none": (put_tensor("_grades", entry((0, 0), 4)), "_grades goes up to 4; it must not be above 3"),
    "words below the first": (put_tensor("_grades", entry((0, 0), -1)), "_grades goes down to -1"),
    "words of floats": (put_tensor("_grades", lambda a: a.astype(float)), "_grades is of type float64"),
    "words of one machine": (put_tensor("_grades", lambda a: a[:, :1]), "_grades has shape"),
    "a missing array": (drop_tensor("norm_"), "'norm_' is missing"),
    "a certificate of other machines": (
        lambda header, tensors: header["model"]["certificate"].update(machines=["a"]),
        "certificate does not fit",
    ),
}


@pytest.mark.parametrize("forgery", ON_SVC)
def test_forged_support_vector_machines_are_refused(svc, content, forged, forgery):
    change, words = ON_SVC[forgery]
    refuse(forged(content(svc), change), words)


def test_forged_gram_machines_are_refused(gram_svc, content, forged):
    whole = content(gram_svc)
    refuse(forged(whole, put(n_features_in=10)), "support_ goes up to .* below d = 10")
    refuse(forged(whole, put_scalar(n_rows_=10)), "_grades has shape")


ON_LONE_MACHINES = {
    "labels": ("svr", put_labels("<i8", [0, 1]), "SVR has none"),
    "a tube below zero": ("svr", put_parameter(epsilon=-0.1), "epsilon is -0.1"),
    "two machines": ("svr", put_tensor("intercept_", lambda a: np.tile(a, 2)), "intercept_ has shape"),
    "a count too many": ("svr", put_tensor("n_support_", lambda a: a + 1), "n_support_ sums to"),
    "a share above one": ("nu_svr", put_parameter(nu=1.5), "nu is 1.5"),
    "a tube that is no number": ("nu_svr", put_scalar(epsilon_={"$float": "nan"}), "epsilon_ is"),
    "no offset": ("one_class", drop("arrays", "offset_"), "no 'offset_'"),
    "a code": ("one_class", put_parameter(multiclass="ovo"), "'multiclass', which is unknown"),
    "a classifier": ("one_class", put(**{"class": "SVC"}), "SVC's parameters has no"),
}


@pytest.mark.parametrize("forgery", ON_LONE_MACHINES)
def test_forged_machines_without_labels_are_refused(request, content, forged, forgery):
    model, change, words = ON_LONE_MACHINES[forgery]
    refuse(forged(content(request.getfixturevalue(model)), change), words)


def test_an_offset_at_odds_with_its_twin_is_for_the_certificate_to_find(one_class, content, forged, loaded):
    disturbed = loaded(forged(content(one_class), put_tensor("offset_", lambda a: a + 0.1)))
    X = np.random.default_rng(2).normal(size=(40, 3))
    assert certify(one_class, X).holds
    assert not certify(disturbed, X).holds


ON_SPARSE = {
    "columns beyond the last": (put_tensor("support_vectors_.indices", entry(0, 3)), "indices are not all from 0 to 2"),
    "columns below zero": (put_tensor("support_vectors_.indices", entry(0, -1)), "indices are not all"),
    "rows that fall": (put_tensor("support_vectors_.indptr", entry(1, 1000)), "indptr must rise"),
    "rows that end early": (put_tensor("support_vectors_.indptr", entry(-1, 1)), "indptr must rise"),
    "no rows": (put_tensor("support_vectors_.indptr", lambda a: a[:0]), "its parts are of shapes"),
    "rows of two axes": (put_tensor("support_vectors_.indptr", lambda a: a[None]), "its parts are of shapes"),
    "fewer cells": (put_tensor("support_vectors_.data", lambda a: a[:-1]), "its parts are of shapes"),
    "cells of whole numbers": (put_tensor("support_vectors_.data", lambda a: a.astype(np.int64)), "is of type int64"),
    "columns of floats": (put_tensor("support_vectors_.indices", lambda a: a.astype(float)), "not whole numbers"),
    "cells that are no number": (put_tensor("support_vectors_.data", entry(0, np.nan)), "not finite"),
    "no columns at all": (drop_tensor("support_vectors_.indices"), "'support_vectors_.indices' is missing"),
}


@pytest.mark.parametrize("model", ["sparse_kernel_perceptron", "sparse_svc"])
@pytest.mark.parametrize("forgery", ON_SPARSE)
def test_forged_sparse_vectors_are_refused(request, content, forged, model, forgery):
    change, words = ON_SPARSE[forgery]
    refuse(forged(content(request.getfixturevalue(model)), change), words)


def on_column(place, /, **values):
    return lambda header, tensors: header["model"]["steps"][0][1]["columns"][place].update(values)


def on_encoder(**values):
    return lambda header, tensors: header["model"]["steps"][0][1].update(values)


def on_steps(change):
    return lambda header, tensors: change(header["model"]["steps"])


ON_PIPELINE = {
    "a scale of zero": (on_column(0, scale=0.0), "scale > 0"),
    "a mean without end": (on_column(0, mean={"$float": "inf"}), "finite"),
    "a mean that is whole": (on_column(0, mean=1), "mean is 1, not float"),
    "a kind unknown": (on_column(0, kind="code"), "not a column of a known kind"),
    "a kind that is a list": (on_column(0, kind=[]), "not a column of a known kind"),
    "a field unknown": (on_column(0, hook="x"), "'hook', which is unknown"),
    "levels out of order": (on_column(1, levels=["b", "a", "c"]), "not sorted and distinct"),
    "levels of two kinds": (on_column(1, levels=["a", 1]), "neither all text nor all numbers"),
    "levels in lists": (on_column(1, levels=[["a"]]), "neither all text"),
    "one level less": (on_column(1, levels=["Biscoe"]), "expects 6 columns, but gets 4"),
    "an index twice": (on_column(0, index=1), "not those of a table with 4"),
    "an index far out": (on_column(0, index=10**30), "not those of a table with 4"),
    "a name twice": (on_column(0, name="island"), "two columns have the same name"),
    "no columns": (on_encoder(columns=[]), "not two lists"),
    "columns of text": (on_encoder(columns=["a"]), "not a column"),
    "dropped of text": (on_encoder(dropped="none"), "not two lists"),
    "a target that is a number": (on_encoder(target=3), "the target is 3"),
    "a target among the columns": (on_encoder(target="island"), "the target is 'island'"),
    "dropped in part": (on_encoder(dropped=[{"name": "x"}]), "a column has no"),
    "other columns": (on_encoder(n_features_in=5), "not those of a table with 5"),
    "an output of others": (on_encoder(output="pickle"), "its output type"),
    "deviations of other columns": (on_encoder(deviations=[1.0]), "a list of 6 numbers was expected"),
    "deviations below zero": (on_encoder(deviations=[-1.0] * 6), "must all be finite numbers ≥ 0"),
    "deviations of text": (on_encoder(deviations=["1"] * 6), "must all be finite numbers ≥ 0"),
    "deviations that are none": (on_encoder(deviations=None), "a list of 6 numbers was expected"),
    "names perhaps": (on_encoder(has_names="maybe"), "whether columns have names"),
    "no steps": (put(steps=[]), "no steps"),
    "steps as an object": (put(steps={}), "no steps"),
    "a step of one": (put(steps=[["a"]]), "a name and a record"),
    "a step named with __": (on_steps(lambda steps: steps[0].__setitem__(0, "a__b")), "a name and a record"),
    "two steps of one name": (on_steps(lambda steps: steps[0].__setitem__(0, "perceptron")), "the same name"),
    "a step of a function": (on_steps(lambda steps: steps[0].__setitem__(1, "eval")), "not a class"),
    "a learner in the middle": (on_steps(lambda steps: steps.append(["more", "passthrough"])), "has no transform"),
    "a cache": (put_parameter(memory="/tmp"), "'memory', which is unknown"),
}


@pytest.mark.parametrize("forgery", ON_PIPELINE)
def test_forged_pipelines_are_refused(pipeline, content, forged, forgery):
    change, words = ON_PIPELINE[forgery]
    refuse(forged(content(pipeline), change), words)


def test_an_encoder_of_forged_parameters_is_refused(pipeline, content, forged):
    def change(header, tensors):
        header["model"]["steps"][0][1]["parameters"]["impute"] = "guess"

    refuse(forged(content(pipeline), change), "impute is 'guess'")


def test_pipelines_within_pipelines_without_end_are_refused(perceptron, content, forged):
    def bury(header, tensors):
        for _ in range(250):
            header["model"] = {
                "class": "Pipeline",
                "parameters": {"transform_input": None, "verbose": False},
                "steps": [["a", header["model"]]],
            }

    refuse(forged(content(perceptron), bury), "nested too deeply|is missing")


def test_long_lists_that_are_no_json_are_refused(perceptron, content, forged):
    def change(header, tensors):
        tensors["names"] = np.frombuffer(b"[" * 200_000, dtype=np.uint8)
        header["model"]["feature_names"] = {"$tensor": "names"}

    refuse(forged(content(perceptron), change), "is not JSON")


def test_a_digest_hidden_in_a_text_does_not_confuse(fit, content, loaded):
    """The digest's own words, as a label: they are escaped once more than the digest is."""
    label = '"sha256":"' + "0" * 64 + '"'
    model = BasicLinearClassifier().fit(np.array([[0.0], [1.0]]), np.array([label, "x" + label]))
    assert loaded(content(model)).classes_[0] == label


@pytest.mark.parametrize("any_tree", ["tree, pruned"], indirect=True)
@pytest.mark.parametrize("value", ["x", [0], {"$float": "nan"}, None, {"$dict": [[0, 1.0]]}], ids=str)
def test_a_parameter_of_another_type_is_refused_by_load_or_by_certify(any_tree, content, forged, value):
    model, X, y = any_tree
    whole = content(model)
    raw = []
    for name in model.get_params(deep=False):
        try:
            certify(load(io.BytesIO(forged(whole, put_parameter(**{name: value})))), X, y)
        except MargroveError:
            pass
        except Exception as error:
            raw.append(f"{name}: {error!r}")
    assert raw == []
