package report

import (
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// Result is what came out of a run.
type Result struct {
	Seed       uint64
	Jobs       int
	Took       time.Duration
	Faults     []schedule.Fault
	Figures    checker.Figures
	Violations []checker.Violation
	// Ledger compares the accounts of Jobs with their Pods.
	Ledger checker.Ledger
	// Lines are the time line of a Job.
	Lines func(job string) []checker.Line
	// Troubles are the faults between two times.
	Troubles func(from, to time.Duration) []checker.Trouble
}

// count counts the violations of some rules.
func (r *Result) count(rules ...checker.Rule) int {
	n := 0
	for _, v := range r.Violations {
		for _, rule := range rules {
			if v.Rule == rule {
				n++
			}
		}
	}
	return n
}
