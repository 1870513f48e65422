// Package queue makes the work queue of a controller before the controller itself, so that others
// than its watches can add requests to it at any time, after a delay or with a priority. What is
// added before the controller starts waits for it.
//
// A source.Channel doesn't serve: its channel blocks the sender while the buffer is full, which it
// stays until the controller starts, and it neither merges equal requests nor delays them. The hook
// that does is controller.Options.NewQueue:
//
//	q := queue.New("jobs", limiter)
//	c, err := controller.New("jobs", mgr, controller.Options{NewQueue: queue.Use(q), …})
package queue

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the work queue of a controller.
type Queue = priorityqueue.PriorityQueue[reconcile.Request]

// RateLimiter says when a request that failed is tried again.
type RateLimiter = workqueue.TypedRateLimiter[reconcile.Request]

// New returns the queue that controller-runtime would make for the controller of this name. It runs
// until the controller stops; without a controller, the caller must shut it down. The limiter nil
// is controller-runtime's.
func New(controller string, limiter RateLimiter) Queue {
	return priorityqueue.New(controller, func(o *priorityqueue.Opts[reconcile.Request]) {
		o.Log = log.Log.WithValues("controller", controller)
		o.RateLimiter = limiter
	})
}

// Use is the option NewQueue of the one controller that works on the queue.
func Use(q Queue) func(string, RateLimiter) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(string, RateLimiter) workqueue.TypedRateLimitingInterface[reconcile.Request] { return q }
}
