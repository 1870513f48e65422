// Package process is the frame of Jobferry's controllers: flags for the API server, serving, leader
// election and logs, and the controller-runtime manager that they configure.
//
//	arguments ──Parse──▶ Flags ──Manager──▶ ctrl.Manager, with health checks
//
// A standby acquires the Lease as soon as the leader has released it: see lock. A leader whose
// Lease has expired by its own clock, as it was stopped for a while, writes nothing more: see term.
//
// An error in the arguments is one line. A process has no other configuration.
package process
