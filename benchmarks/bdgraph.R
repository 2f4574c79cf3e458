# Rscript bdgraph.R TABLE.csv LATENT ALGORITHM FEW MANY
# CPU seconds per iteration of BDgraph's copula sampler, by the difference of a long and a short run, so that what is
# done once cancels. The first LATENT columns have levels; all other columns are continuous.
given <- commandArgs(trailingOnly = TRUE)
suppressPackageStartupMessages(library(BDgraph))
table <- as.matrix(read.csv(given[1]))
latent <- as.integer(given[2]); few <- as.integer(given[4]); many <- as.integer(given[5])
cost <- function(iter) {
  set.seed(1)
  time <- system.time(bdgraph(table, method = "gcgm", algorithm = given[3], iter = iter, burnin = 0,
                              not.cont = rep(1:0, c(latent, ncol(table) - latent)), cores = 1, verbose = FALSE))
  time[["user.self"]] + time[["sys.self"]]
}
cat((cost(many) - cost(few)) / (many - few), "\n")
cat("BDgraph ", as.character(packageVersion("BDgraph")), ", ", R.version.string, ", BLAS ",
    basename(extSoftVersion()[["BLAS"]]), "\n", sep = "")
