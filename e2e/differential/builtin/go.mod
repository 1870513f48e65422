// Built with the go.mod of a folder under e2e/versions, so that the version is pinned in one place. This file only
// says that the folder is no part of the e2e module.
module github.com/jobferry/jobferry/e2e/differential/builtin

go 1.26.0
