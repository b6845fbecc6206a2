# Trees of R on folds that tree_accuracy.py has written: a line "fold,right,leaves,seconds" for each.
#
#   Rscript tree_accuracy.R FOLDER rpart|rpart_1se|ctree
#
# FOLDER holds kinds.txt ("numeric" or "character", a line for each column, the class last) and train0.csv, test0.csv, …

given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]
side <- given[2]
kinds <- readLines(file.path(folder, "kinds.txt"))
set.seed(0) # rpart draws its folds, ctree the way of missing cells

# The default settings: cp = 0.01, 20 rows to split, 7 in a leaf, missing cells by surrogates.
fit_rpart <- function(formula, rows) rpart::rpart(formula, rows, method = "class")

# Grown to its end (but for those 20 and 7 rows), then the smallest tree whose error in ten folds is within a standard
# error of the least (Breiman et al. 1984, 3.4.3).
fit_rpart_1se <- function(formula, rows) {
  grown <- rpart::rpart(formula, rows, method = "class", cp = 0)
  steps <- grown$cptable
  best <- which.min(steps[, "xerror"])
  most <- steps[best, "xerror"] + steps[best, "xstd"]
  rpart::prune(grown, cp = steps[which(steps[, "xerror"] <= most)[1], "CP"])
}

fit_ctree <- function(formula, rows) partykit::ctree(formula, rows)

fit <- list(rpart = fit_rpart, rpart_1se = fit_rpart_1se, ctree = fit_ctree)[[side]]
leaves <- function(tree) if (side == "ctree") partykit::width(tree) else sum(tree$frame$var == "<leaf>")

one_fold <- function(train_file) {
  fold <- sub("train(.*)[.]csv", "\\1", basename(train_file))
  train <- read.csv(train_file, colClasses = kinds, na.strings = "")
  test <- read.csv(file.path(folder, paste0("test", fold, ".csv")), colClasses = kinds, na.strings = "")
  for (j in which(kinds == "character")) { # both parts have the same levels: an unseen one is no error
    levels <- sort(unique(c(train[[j]], test[[j]])))
    train[[j]] <- factor(train[[j]], levels)
    test[[j]] <- factor(test[[j]], levels)
  }
  target <- names(train)[ncol(train)]
  formula <- as.formula(paste(target, "~ ."))
  seconds <- sum(system.time(tree <- fit(formula, train))[c("user.self", "sys.self")])
  right <- sum(predict(tree, test, type = if (side == "ctree") "response" else "class") == test[[target]])
  cat(fold, right, leaves(tree), seconds, sep = ",")
  cat("\n")
}

tryCatch(
  for (train_file in Sys.glob(file.path(folder, "train*.csv"))) one_fold(train_file),
  error = function(what) { # the message alone
    message(conditionMessage(what))
    quit(status = 1)
  }
)
