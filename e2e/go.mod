module github.com/jobferry/jobferry/e2e

go 1.26.0

require golang.org/x/mod v0.29.0

replace github.com/jobferry/jobferry => ../
