# Rscript networks.R TABLE.csv QUERY METHOD SEED OUT.csv
# One of several estimators of a whole Gaussian network, with its own defaults. Writes the block of signed weights
# between the first QUERY columns and the rest, 0 where there is no edge; prints CPU seconds, then versions.
# Where an estimator has edges but no weights, their signs are those of the inverse sample covariance.
given <- commandArgs(trailingOnly = TRUE)
table <- as.matrix(read.csv(given[1]))
query <- seq_len(as.integer(given[2]))
method <- given[3]
package <- if (startsWith(method, "bdgraph")) "BDgraph" else "huge"
suppressPackageStartupMessages(library(package, character.only = TRUE))
set.seed(as.integer(given[4]))
unweighted <- function(adjacent) as.matrix(adjacent) * sign(solve(cov(table)))
bdgraph_network <- function() {
  sampled <- bdgraph(table, method = "ggm", algorithm = "bdmcmc", cores = 1, verbose = FALSE)
  likely <- plinks(sampled, round = 8)
  (likely + t(likely) >= 0.5) * sampled$K_hat
}
bdgraph_mpl <- function() {
  likely <- plinks(bdgraph.mpl(table, method = "ggm", cores = 1, verbose = FALSE), round = 8)
  unweighted(likely + t(likely) >= 0.5)
}
huge_mb <- function() unweighted(huge.select(huge(table, verbose = FALSE), criterion = "ric", verbose = FALSE)$refit)
huge_glasso <- function() {
  path <- huge(table, method = "glasso", verbose = FALSE)
  as.matrix(huge.select(path, criterion = "ebic", verbose = FALSE)$opt.icov)
}
estimators <- list("bdgraph" = bdgraph_network, "bdgraph-mpl" = bdgraph_mpl, "huge-mb" = huge_mb,
                   "huge-glasso" = huge_glasso)
time <- system.time(W <- estimators[[method]]())
write.table(W[query, -query, drop = FALSE], given[5], sep = ",", row.names = FALSE, col.names = FALSE)
cat(time[["user.self"]] + time[["sys.self"]], "\n")
cat(package, " ", as.character(packageVersion(package)), "\n", sep = "")
