// Package process is what Jobferry's controllers have in common as processes: flags for the API
// server, serving, leader election and logs, and the controller-runtime manager that these make.
//
//	arguments ──Parse──▶ Flags ──Manager──▶ ctrl.Manager, with health checks
//
// What is wrong with the arguments is told in one line; a process has no other configuration.
package process
