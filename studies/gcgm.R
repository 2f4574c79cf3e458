# Rscript gcgm.R TABLE.csv LEVELS QUERY SEED ITERATIONS OUT.csv
# BDgraph's copula graphical model of a mixed table with missing cells; LEVELS has a 1 for each column with levels, a 0
# for each continuous one, without separators. Writes a row for every pair that touches the first QUERY columns, i < j:
# i, j, the probability of the edge, and the sign of its partial correlation. Half of the iterations are burn-in. Prints
# CPU seconds, and versions.
given <- commandArgs(trailingOnly = TRUE)
suppressPackageStartupMessages(library(BDgraph))
table <- as.matrix(read.csv(given[1]))
levels <- as.integer(strsplit(given[2], "")[[1]])
query <- as.integer(given[3])
set.seed(as.integer(given[4]))
time <- system.time(sampled <- bdgraph(table, method = "gcgm", algorithm = "bdmcmc", iter = as.integer(given[5]),
                                       not.cont = levels, cores = 1, verbose = FALSE))
upper <- plinks(sampled, round = 10)
probability <- upper + t(upper)
pairs <- which(upper.tri(probability), arr.ind = TRUE)
pairs <- pairs[pairs[, 1] <= query, , drop = FALSE]
written <- data.frame(i = pairs[, 1], j = pairs[, 2], probability = sprintf("%.10f", probability[pairs]),
                      sign = as.integer(-sign(sampled$K_hat[pairs])))
write.csv(written, given[6], row.names = FALSE, quote = FALSE)
cat(time[["user.self"]] + time[["sys.self"]], "\n")
cat("BDgraph ", as.character(packageVersion("BDgraph")), "\n", sep = "")
