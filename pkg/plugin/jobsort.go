package plugin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/jobferry/jobferry/pkg/jobview"
)

func stateNames() []string {
	names := make([]string, len(jobview.States))
	for i, state := range jobview.States {
		names[i] = string(state)
	}
	return names
}

// check validates the flags of jobs.
func (f *listFlags) check(cmd *cobra.Command, names []string) error {
	switch {
	case len(names) > 0 && f.all:
		return usage(cmd, "a NAME needs one namespace: use -n in place of -A")
	case len(names) > 1 && f.watch:
		return usage(cmd, "--watch takes one NAME, or none for all Jobs")
	}
	for _, state := range f.states {
		if !slices.ContainsFunc(stateNames(), func(name string) bool { return strings.EqualFold(name, state) }) {
			return usage(cmd, "--state %s: it must be one of %s", state, strings.Join(stateNames(), ", "))
		}
	}
	if f.sortBy != "" {
		if _, err := get.RelaxedJSONPathExpression(f.sortBy); err != nil {
			return usage(cmd, "--sort-by %s: %w", f.sortBy, err)
		}
	}
	return nil
}

func (f *listFlags) isInState(job *batchv1.Job, around jobview.Around) bool {
	state := string(jobview.StateOf(job, around))
	return len(f.states) == 0 || slices.ContainsFunc(f.states, func(asked string) bool { return strings.EqualFold(asked, state) })
}

// sortJobs sorts Jobs by a field, as kubectl does.
func sortJobs(cmd *cobra.Command, jobs []batchv1.Job, around func(*batchv1.Job) jobview.Around, field string) error {
	if field == "" || len(jobs) == 0 {
		return nil
	}
	contents, objects := make([]map[string]any, len(jobs)), make([]runtime.Object, len(jobs))
	for i := range jobs {
		var err error
		if contents[i], err = sortable(&jobs[i], around(&jobs[i])); err != nil {
			return err
		}
		objects[i] = &unstructured.Unstructured{Object: contents[i]}
	}
	if err := canSort(contents, field); err != nil {
		return usage(cmd, "--sort-by %s: %w", field, err)
	}
	sorter, err := get.SortObjects(nil, objects, field) // a decoder is for what isn't decoded
	if err != nil {
		return usage(cmd, "--sort-by %s: %w", field, err)
	}
	unsorted := slices.Clone(jobs)
	for i := range jobs {
		jobs[i] = unsorted[sorter.OriginalPosition(i)]
	}
	return nil
}

// canSort reports fields that kubectl's sorter can't compare. It would end the program.
func canSort(objects []map[string]any, field string) error {
	expression, err := get.RelaxedJSONPathExpression(field)
	if err != nil {
		return err
	}
	path := jsonpath.New("sorting").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return err
	}
	kinds := map[string]bool{}
	for _, object := range objects {
		found, err := path.FindResults(object)
		if err != nil {
			return err
		}
		if len(found) > 0 && len(found[0]) > 0 {
			kinds[fmt.Sprintf("%T", found[0][0].Interface())] = true
		}
	}
	for kind := range kinds {
		if len(kinds) > 1 || kind != "string" && kind != "int64" && kind != "float64" {
			return errors.New("its values are neither all numbers nor all texts or times")
		}
	}
	return nil
}

// sortable returns the fields of a Job. Its status has, beside its own, what users see of it.
func sortable(job *batchv1.Job, around jobview.Around) (fields map[string]any, err error) {
	if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(job); err != nil {
		return nil, err
	}
	seen := jobview.Of(job, around).Status
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&seen)
	if err != nil {
		return nil, err
	}
	own, _, err := unstructured.NestedMap(fields, "status")
	maps.Copy(status, own)
	fields["status"] = status
	return fields, err
}
