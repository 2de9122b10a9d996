# Canonical correlations by R's cancor: `Rscript make.R FOLDER_OF_DATA_SETS` writes cancor.json.
folder <- commandArgs(trailingOnly = TRUE)[1]
table <- function(name) read.csv(file.path(folder, name))
numbers <- function(x) paste0("[", paste(sprintf("%.15g", x), collapse = ", "), "]")
linnerud <- table("linnerud/linnerud.csv")
mmreg <- table("mmreg/mmreg.csv")
genes <- table("nutrimouse/gene.csv")[, 1:10]
lipids <- table("nutrimouse/lipid.csv")[, 1:10]
cat(sprintf(
  '{"version": "%s",\n "linnerud": %s,\n "mmreg": %s,\n "nutrimouse_first_ten": %s}\n', R.version.string,
  numbers(cancor(linnerud[, 1:3], linnerud[, 4:6])$cor), numbers(cancor(mmreg[, 1:3], mmreg[, 4:8])$cor),
  numbers(cancor(genes, lipids)$cor)
), file = "cancor.json")
