# Rscript networks.R TABLE.csv QUERY METHOD SEED OUT.csv
# One of several estimators of a whole Gaussian network. Writes a row for every pair that touches the first QUERY
# columns, i < j: i, j, a score that orders the pairs (a probability for BDgraph; for huge the penalty at which the
# edge enters a path of 100 penalties), whether the method selects it by its own rule, and the sign of its partial
# correlation, 0 if the method has none. Prints CPU seconds of fit and selection, then versions. BDgraph's "mpl" runs
# 5,000 iterations, half of them burn-in; "bdmcmc" 3,000, half of them burn-in; all else is as the packages have it.
given <- commandArgs(trailingOnly = TRUE)
table <- as.matrix(read.csv(given[1]))
query <- as.integer(given[2])
method <- given[3]
package <- if (startsWith(method, "bdgraph")) "BDgraph" else "huge"
suppressPackageStartupMessages(library(package, character.only = TRUE))
set.seed(as.integer(given[4]))
none <- matrix(0, ncol(table), ncol(table))
both <- function(upper) upper + t(upper)
likely <- function(sampled, signs = none) {
  probability <- both(plinks(sampled, round = 10))
  list(score = probability, chosen = probability > 0.5, sign = signs)
}
bdmcmc <- function() {
  sampled <- bdgraph(table, method = "ggm", algorithm = "bdmcmc", iter = 3000, cores = 1, verbose = FALSE)
  likely(sampled, -sign(sampled$K_hat))
}
mpl <- function() {
  likely(bdgraph.mpl(table, method = "ggm", algorithm = "bdmcmc", iter = 5000, burnin = 2500, cores = 1,
                     verbose = FALSE))
}
entered <- function(how, finest) {
  path <- huge(table, method = how, nlambda = 100, lambda.min.ratio = finest, verbose = FALSE)
  score <- none
  for (k in rev(seq_along(path$lambda))) score[as.matrix(path$path[[k]]) != 0] <- path$lambda[k]
  score
}
huge_mb <- function() {
  fit <- huge.select(huge(table, method = "mb", verbose = FALSE), criterion = "ric", verbose = FALSE)
  list(chosen = as.matrix(fit$refit) != 0, sign = none)
}
huge_glasso <- function() {
  fit <- huge.select(huge(table, method = "glasso", verbose = FALSE), criterion = "ebic", verbose = FALSE)
  list(chosen = as.matrix(fit$refit) != 0, sign = -sign(as.matrix(fit$opt.icov)))
}
estimators <- list("bdgraph" = bdmcmc, "bdgraph-mpl" = mpl, "huge-mb" = huge_mb, "huge-glasso" = huge_glasso)
time <- system.time(found <- estimators[[method]]())
if (method == "huge-mb") found$score <- entered("mb", 0.01)
if (method == "huge-glasso") found$score <- entered("glasso", 0.05)
pairs <- which(upper.tri(none), arr.ind = TRUE)
pairs <- pairs[pairs[, 1] <= query, , drop = FALSE]
pairs <- pairs[order(pairs[, 1], pairs[, 2]), , drop = FALSE]
written <- data.frame(i = pairs[, 1], j = pairs[, 2], score = sprintf("%.10f", found$score[pairs]),
                      chosen = as.integer(found$chosen[pairs]), sign = as.integer(found$sign[pairs]))
write.csv(written, given[5], row.names = FALSE, quote = FALSE)
cat(time[["user.self"]] + time[["sys.self"]], "\n")
cat(package, " ", as.character(packageVersion(package)), "\n", sep = "")
