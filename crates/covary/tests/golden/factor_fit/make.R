# How factor analyses fit, by R's factanal and by lavaan: `Rscript make.R FOLDER_OF_DATA_SETS` writes fit.json.
# Uniquenesses are bounded by 0.005 in factanal alone: the cases have none there.
suppressMessages(library(lavaan))
folder <- commandArgs(trailingOnly = TRUE)[1]
number <- function(x) ifelse(is.na(x), "null", sprintf("%.15g", x))
numbers <- function(x) paste0("[", paste(sprintf("%.15g", x), collapse = ", "), "]")

holzinger <- read.csv(file.path(folder, "holzinger_swineford/holzinger_swineford1939.csv"))[, paste0("x", 1:9)]
# Every seventh cell, counted along the rows, is missing where its number in the table is even.
cells <- matrix(seq_len(length(as.matrix(holzinger))) - 1, nrow(holzinger), byrow = TRUE)
gaps <- holzinger
gaps[cells %% 7 == 3 & cells %% 2 == 0] <- NA
matrix_of <- function(name) as.matrix(read.csv(file.path(folder, "fa_covariances", name), row.names = 1))

tight <- list(nstart = 20, opt = list(control = list(factr = 10, pgtol = 0, maxit = 10000)))
by_factanal <- function(q, ...) {
  fit <- factanal(factors = q, rotation = "none", control = tight, ...)
  list(chi_square = fit$STATISTIC, p = fit$PVAL, uniquenesses = fit$uniquenesses)
}
by_lavaan <- function(q, ...) {
  fit <- efa(nfactors = q, rotation = "none", output = "lavaan", meanstructure = TRUE, ...)
  fitMeasures(fit, c("chisq", "df", "pvalue", "rmsea", "rmsea.ci.lower", "rmsea.ci.upper", "tli", "cfi",
                     "srmr_bentler_nomean", "logl", "unrestricted.logl", "aic", "bic"))
}
case <- function(name, q, n, ours, theirs) {
  fields <- c("chisq", "df", "pvalue", "rmsea", "rmsea.ci.lower", "rmsea.ci.upper", "tli", "cfi",
              "srmr_bentler_nomean", "logl", "unrestricted.logl", "aic", "bic")
  lavaan <- paste(sprintf('"%s": %s', fields, number(unclass(theirs)[fields])), collapse = ", ")
  factanal <- if (is.null(ours)) "null" else sprintf('{"chi_square": %s, "p": %s, "uniquenesses": %s}',
    number(ours$chi_square), number(ours$p), numbers(ours$uniquenesses))
  sprintf('{"name": "%s", "factors": %d, "rows": %d,\n   "factanal": %s,\n   "lavaan": {%s}}',
          name, q, n, factanal, lavaan)
}
by_matrix <- function(name, file, q, n) {
  s <- matrix_of(file)
  rownames(s) <- colnames(s)
  # lavaan wants means where it counts their parameters; they fit whatever they are.
  case(name, q, n, by_factanal(q, covmat = list(cov = s, n.obs = n)),
       by_lavaan(q, sample.cov = s, sample.nobs = n, sample.mean = setNames(rep(0, ncol(s)), colnames(s)),
                 ov.names = colnames(s)))
}
by_table <- function(name, data, q) {
  missing <- if (anyNA(data)) "fiml" else "listwise"
  ours <- if (anyNA(data)) NULL else by_factanal(q, x = data)
  case(name, q, nrow(data), ours, by_lavaan(q, data = data, missing = missing))
}
cases <- c(
  by_table("holzinger", holzinger, 1), by_table("holzinger", holzinger, 2), by_table("holzinger", holzinger, 3),
  by_table("holzinger_gaps", gaps, 1), by_table("holzinger_gaps", gaps, 2), by_table("holzinger_gaps", gaps, 3),
  by_matrix("ability", "ability_cov.csv", 1, 112), by_matrix("ability", "ability_cov.csv", 2, 112),
  by_matrix("harman23", "harman23_cor.csv", 1, 305), by_matrix("harman23", "harman23_cor.csv", 2, 305),
  by_matrix("harman74", "harman74_cor.csv", 1, 145), by_matrix("harman74", "harman74_cor.csv", 4, 145)
)
cat(sprintf('{"versions": "%s, lavaan %s",\n "cases": [\n  %s\n ]}\n', R.version.string,
            packageVersion("lavaan"), paste(cases, collapse = ",\n  ")), file = "fit.json")
