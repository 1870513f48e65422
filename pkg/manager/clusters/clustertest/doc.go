// Package clustertest simulates worker clusters in process: as much of an API server over real TLS
// as the manager asks of a worker, and a Job controller for plain Jobs. A hundred of them fit where
// two real control planes do. A test of e2e/clusters holds the answers against a real API server's.
//
//	request ──▶ Server ──▶ Cluster: faults ──▶ verbs ──▶ store ──▶ log of changes ──▶ watches
//	                                                       ▲                └──────▶ RunJobs
//	                                                       └── Put, Job status, Pods ──┘
//
// The store holds each object as it is sent, in protobuf, so that a list or an event costs no
// encoding.
//
// # What is left out
//
// Defaults, validation, admission, authorization beside one token, fields that are applied, Tables,
// and all kinds that the manager doesn't ask for. Lists in pages show later pages as they are by
// then. RunJobs starts all Pods of a Job at once, and all succeed at once.
package clustertest
