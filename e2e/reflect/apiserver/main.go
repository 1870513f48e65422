// Command apiserver is what an API server does to a Job between a request and etcd: decoding,
// defaulting, conversion, and the strategies of batch/v1 Jobs and of their status, which validate
// and drop fields. It's built once per Kubernetes release, from that release's own packages.
//
// It reads requests from its standard input and writes an answer to each to its standard output,
// all of them JSON. Its arguments are the feature gates to switch on.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/batch/job"
)

// request is a create if Old is missing, and otherwise an update of the Job, or of its status.
type request struct {
	New, Old json.RawMessage
	Status   bool
}

// answer has the Job as a client sees it, or why the request is refused.
type answer struct {
	Job   *batchv1.Job `json:",omitempty"`
	Error string       `json:",omitempty"`
}

func main() {
	if err := serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(gates []string, in io.Reader, out io.Writer) error {
	on := map[string]bool{}
	for _, gate := range gates {
		on[gate] = true
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(on); err != nil {
		return err
	}
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		if err := answers.Encode(handle(r)); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
	}
}

func handle(r request) answer {
	stored, err := store(r)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var seen batchv1.Job
	if err := legacyscheme.Scheme.Convert(stored, &seen, nil); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Job: &seen}
}

func store(r request) (*batch.Job, error) {
	next, err := decode(r.New)
	if err != nil {
		return nil, err
	}
	ctx := genericapirequest.WithNamespace(context.Background(), next.Namespace)
	info := &genericapirequest.RequestInfo{
		IsResourceRequest: true, APIGroup: batchv1.GroupName, APIVersion: batchv1.SchemeGroupVersion.Version, Resource: "jobs",
	}
	ctx = genericapirequest.WithRequestInfo(ctx, info)
	if len(r.Old) == 0 {
		return next, rest.BeforeCreate(job.Strategy, ctx, next)
	}
	old, err := decode(r.Old)
	if err != nil {
		return nil, err
	}
	if r.Status {
		info.Subresource = "status"
		return next, rest.BeforeUpdate(job.StatusStrategy, ctx, next, old)
	}
	return next, rest.BeforeUpdate(job.Strategy, ctx, next, old)
}

// decode drops the fields that this release doesn't know, as an API server does.
func decode(data []byte) (*batch.Job, error) {
	var external batchv1.Job
	if err := json.Unmarshal(data, &external); err != nil {
		return nil, fmt.Errorf("decode a Job: %w", err)
	}
	legacyscheme.Scheme.Default(&external)
	var internal batch.Job
	if err := legacyscheme.Scheme.Convert(&external, &internal, nil); err != nil {
		return nil, fmt.Errorf("convert a Job: %w", err)
	}
	return &internal, nil
}
