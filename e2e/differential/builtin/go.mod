// Built with -modfile=../../versions/v1.36/go.mod, so that the version is pinned in one place. This file only says
// that the folder is no part of the e2e module.
module github.com/jobferry/jobferry/e2e/differential/builtin

go 1.26.0
