package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// run is what one run of a contender cost.
type run struct {
	Rows []cost
	// CPU and Memory are what its process took over all rows: seconds, and bytes at most.
	CPU    float64
	Memory int64
}

// cost is what a row cost.
type cost struct {
	Elapsed time.Duration
	Writes  map[string]int // requests of the controller, by verb and resource
}

// run measures all rows with a contender in a cluster of its own.
func (c contender) run(ctx context.Context, dir string, workers int, rows []row, progress func(string, ...any)) (run, error) {
	cluster, err := start(ctx, c.name)
	if err != nil {
		return run{}, err
	}
	defer func() { _ = cluster.Stop() }() // it goes with this process anyway
	client, err := protobuf(cluster)
	if err != nil {
		return run{}, err
	}
	controller, err := c.launch(ctx, dir, cluster, workers)
	if err != nil {
		return run{}, err
	}
	var out run
	for i, r := range rows {
		before, err := writes(cluster)
		if err != nil {
			return run{}, err
		}
		elapsed, err := r.run(ctx, client, fmt.Sprintf("row-%d", i))
		if err != nil {
			return run{}, fmt.Errorf("%s: %w", r.name, err)
		}
		after, err := writes(cluster)
		if err != nil {
			return run{}, err
		}
		for key, n := range before {
			after[key] -= n
		}
		out.Rows = append(out.Rows, cost{elapsed, after})
		progress("%s, %d at a time: %s: %v", c.name, workers, r.name, elapsed.Round(10*time.Millisecond))
	}
	controller.Kill()
	out.CPU, out.Memory = controller.TotalUsage()
	return out, nil
}

// start starts a cluster without a Job controller, and with a node.
func start(ctx context.Context, name string) (*rig.Cluster, error) {
	cluster, err := rig.Start(ctx, rig.Options{
		Name: name, JobController: rig.None, Audit: true,
		// Beyond the default of 12,500 finished Pods it would delete some, in the later loads.
		ControllerManagerFlags: []string{"--controllers=namespace-controller,serviceaccount-controller", "--terminated-pod-gc-threshold=0"},
		// Namespaces can be used at once.
		APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount"},
	})
	if err != nil {
		return nil, err
	}
	if err := workertest.AddNode(ctx, cluster.Client()); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return cluster, nil
}

// protobuf is a client for the kubelet and the bench itself that takes little of the cores that
// they share with all else.
func protobuf(cluster *rig.Cluster) (kubernetes.Interface, error) {
	config := cluster.RESTConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}

// writes counts the requests of Job controllers so far; those that were answered by an error have
// its code.
func writes(c *rig.Cluster) (map[string]int, error) {
	requests, err := c.Requests()
	if err != nil {
		return nil, err
	}
	var ours []rig.Request
	for _, r := range requests {
		controller := strings.HasPrefix(r.UserAgent, "kube-controller-manager") || strings.HasPrefix(r.UserAgent, "jobferry-worker")
		about := r.Object.Resource == "pods" || r.Object.Resource == "jobs" || r.Object.Resource == "events"
		if controller && about && r.Verb != "watch" && r.Verb != "list" {
			ours = append(ours, r)
		}
	}
	return rig.CountBy(ours, func(r rig.Request) string {
		key := strings.TrimSuffix(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")
		if r.Response.Code >= http.StatusBadRequest {
			key += fmt.Sprintf(" (%d)", r.Response.Code)
		}
		return key
	}), nil
}
