// Package v1alpha1 is the hub's API of Jobferry: the WorkerCluster, in which an admin sees the
// state of one worker cluster and sets how it is used.
//
// A WorkerCluster is made by the manager for each registration Secret; nobody has to write one by
// hand. Its spec belongs to the admin, its status to the manager.
//
// +kubebuilder:object:generate=true
// +groupName=jobferry.dev
package v1alpha1
