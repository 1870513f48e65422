package demo

import (
	"fmt"
	"os"
	"strings"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Options choose what the demo is like.
type Options struct {
	// Out is where the picture, or the lines, and the result go.
	Out *os.File
	// Keep leaves the clusters running after the result, until the context ends.
	Keep bool
	// JobController says who runs the Jobs in the workers: BuiltIn (default), or Embedded, which is
	// a jobferry-worker for each worker, whose kube-controller-manager then has no Job controller.
	JobController v1alpha1.JobController
}

// ParseJobController accepts the names of the API in any case; the empty string stands for BuiltIn.
func ParseJobController(s string) (v1alpha1.JobController, error) {
	for _, known := range []v1alpha1.JobController{v1alpha1.JobControllerBuiltIn, v1alpha1.JobControllerEmbedded} {
		if strings.EqualFold(s, string(known)) {
			return known, nil
		}
	}
	if s == "" {
		return v1alpha1.JobControllerBuiltIn, nil
	}
	return "", fmt.Errorf("unknown Job controller %q: must be builtin or embedded", s)
}

// workerShape is what a worker looks like.
type workerShape struct {
	name  string
	nodes int
	cpu   string
}

// workerShapes are different, so that the choice between them can be seen.
var workerShapes = []workerShape{
	{name: "east", nodes: 3, cpu: "4"},
	{name: "west", nodes: 2, cpu: "8"},
}
