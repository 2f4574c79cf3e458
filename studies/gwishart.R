# Rscript gwishart.R GRAPH VARIABLES ROWS SEED FOLDER
# A network and a table by BDgraph's own simulator, with its defaults: FOLDER/table.csv and FOLDER/W.csv, all digits.
# The precision matrix is exactly zero where its graph has no edge.
given <- commandArgs(trailingOnly = TRUE)
suppressPackageStartupMessages(library(BDgraph))
set.seed(as.integer(given[4]))
drawn <- bdgraph.sim(p = as.integer(given[2]), n = as.integer(given[3]), graph = given[1], type = "Gaussian")
write_matrix <- function(x, name) {
  text <- matrix(sprintf("%.17g", x), nrow(x))
  write.table(text, file.path(given[5], name), sep = ",", quote = FALSE, row.names = FALSE, col.names = FALSE)
}
write_matrix(drawn$data, "table.csv")
write_matrix((drawn$K + t(drawn$K)) / 2 * (unclass(drawn$G) + diag(ncol(drawn$G))), "W.csv")
