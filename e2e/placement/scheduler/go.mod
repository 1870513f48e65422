// Built with the go.mod of a folder under e2e/versions, one program per Kubernetes release. This file only says that
// the folder is no part of the e2e module.
module github.com/jobferry/jobferry/e2e/placement/scheduler

go 1.26.0
