// Package restore puts the etcd of a hub or a worker back to a backup while Jobferry runs.
package restore
