package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// perTransaction is how many operations etcd takes at once.
const perTransaction = 128

// etcdOperation is one of a transaction, as etcd's JSON has it.
type etcdOperation struct {
	Put struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	} `json:"requestPut"`
}

// storeJobs puts Jobs into the hub's etcd as its API server stores them: thousands of them are
// there in seconds, with their status.
func storeJobs(ctx context.Context, etcd string, jobs []*batchv1.Job) error {
	for len(jobs) > 0 {
		n := min(len(jobs), perTransaction)
		operations := make([]etcdOperation, n)
		for i, job := range jobs[:n] {
			raw, err := job.Marshal()
			if err != nil {
				return err
			}
			unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, Raw: raw}
			value, err := unknown.Marshal()
			if err != nil {
				return err
			}
			operations[i].Put.Key = []byte("/registry/jobs/" + job.Namespace + "/" + job.Name)
			operations[i].Put.Value = append([]byte("k8s\x00"), value...)
		}
		if err := transact(ctx, etcd, operations); err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

func transact(ctx context.Context, etcd string, operations []etcdOperation) error {
	body, err := json.Marshal(map[string]any{"success": operations})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, etcd+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd answers %s: %s", response.Status, answer)
	}
	return err
}
