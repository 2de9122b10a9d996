# The R peers of imputation.py: Rscript imputation.R METHOD TABLE DRAWS SEED, then processor seconds on standard output.
# TABLE is a CSV file without names; completed tables are written to DRAWS one below the other.
words <- commandArgs(trailingOnly = TRUE)
x <- as.matrix(read.csv(words[2], header = FALSE))
colnames(x) <- paste0("c", seq_len(ncol(x)))
draws <- 20

chained <- function(method) {
  found <- mice::mice(as.data.frame(x), m = draws, method = method, printFlag = FALSE)
  lapply(seq_len(draws), function(k) mice::complete(found, k))
}
fill <- list(
  "mice norm" = function() chained("norm"),
  "mice pmm" = function() chained("pmm"),
  # The ridge that its manual suggests for many gaps or few rows; without it some of these tables end in an error.
  "Amelia" = function() Amelia::amelia(x, m = draws, p2s = 0, empri = 0.01 * nrow(x))$imputations,
  "pcaMethods bpca" = function() {
    found <- pcaMethods::pca(x, nPcs = min(ncol(x) - 1, 20), method = "bpca", scale = "uv", verbose = FALSE)
    list(pcaMethods::completeObs(found))
  }
)
invisible(loadNamespace(sub(" .*", "", words[1])))
set.seed(as.integer(words[4]))
spent <- system.time(tables <- suppressWarnings(fill[[words[1]]]()))
write.table(do.call(rbind, lapply(tables, as.matrix)), words[3], sep = ",", row.names = FALSE, col.names = FALSE)
cat("seconds", spent[["user.self"]] + spent[["sys.self"]], "\n")
