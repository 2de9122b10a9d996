# The R peers of imputation.py: Rscript imputation.R METHOD TABLES DRAWS SEED ROWS, then processor seconds on standard output.
# TABLES is a CSV file without names: tables of ROWS rows, one below the other; so are the completed tables in DRAWS.
words <- commandArgs(trailingOnly = TRUE)
every <- as.matrix(read.csv(words[2], header = FALSE))
colnames(every) <- paste0("c", seq_len(ncol(every)))
rows <- if (length(words) > 4) as.integer(words[5]) else nrow(every)
draws <- 20

chained <- function(x, method) {
  found <- mice::mice(as.data.frame(x), m = draws, method = method, printFlag = FALSE)
  lapply(seq_len(draws), function(k) mice::complete(found, k))
}
fill <- list(
  "mice norm" = function(x) chained(x, "norm"),
  "mice pmm" = function(x) chained(x, "pmm"),
  # The ridge that its manual suggests for many gaps or few rows; without it some of these tables end in an error.
  "Amelia" = function(x) Amelia::amelia(x, m = draws, p2s = 0, empri = 0.01 * nrow(x))$imputations,
  "pcaMethods bpca" = function(x) {
    found <- pcaMethods::pca(x, nPcs = min(ncol(x) - 1, 20), method = "bpca", scale = "uv", verbose = FALSE)
    list(pcaMethods::completeObs(found))
  }
)
invisible(loadNamespace(sub(" .*", "", words[1])))
set.seed(as.integer(words[4]))
each <- lapply(seq_len(nrow(every) / rows), function(k) every[(k - 1) * rows + seq_len(rows), , drop = FALSE])
spent <- system.time(tables <- suppressWarnings(lapply(each, fill[[words[1]]])))
# Amelia leaves NA in the place of a draw whose chain failed.
drawn <- Filter(function(draw) nrow(draw) == rows, lapply(unlist(tables, recursive = FALSE), as.matrix))
write.table(do.call(rbind, drawn), words[3], sep = ",", row.names = FALSE, col.names = FALSE)
cat("seconds", spent[["user.self"]] + spent[["sys.self"]], "\n")
