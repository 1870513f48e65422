package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/quantities"
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
	keys, err := sortKeys(jobs, around, field)
	if err != nil {
		return usage(cmd, "--sort-by %s: %w", field, err)
	}
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return keys[i].compare(keys[j]) })
	unsorted := slices.Clone(jobs)
	for i, at := range order {
		jobs[i] = unsorted[at]
	}
	return nil
}

// sortKey is a Job's value of the field by which Jobs are sorted. kubectl's sorter isn't used: it
// compares texts as quantities, whatever that costs.
type sortKey struct {
	found   int // 0: the Job has no such field
	integer int64
	number  float64
	text    string
	// quantity of the text; nil: it isn't one.
	quantity *resource.Quantity
}

// compare orders Jobs without the field first. Two quantities aren't compared as texts.
func (k sortKey) compare(other sortKey) int {
	if k.quantity != nil && other.quantity != nil {
		return k.quantity.Cmp(*other.quantity)
	}
	return cmp.Or(cmp.Compare(k.found, other.found), cmp.Compare(k.integer, other.integer),
		cmp.Compare(k.number, other.number), cmp.Compare(k.text, other.text))
}

var errUnsortable = errors.New("its values are neither all numbers nor all texts or times")

func newSortKey(value any) (sortKey, error) {
	key := sortKey{found: 1}
	switch value := value.(type) {
	case int64:
		key.integer = value
	case float64:
		key.number = value
	case string:
		key.text = value
		if quantity, err := quantities.Parse(value); err == nil {
			key.quantity = &quantity
		}
	default:
		return key, errUnsortable
	}
	return key, nil
}

// sortKeys returns the Jobs' values of a field. They are of one type.
func sortKeys(jobs []batchv1.Job, around func(*batchv1.Job) jobview.Around, field string) ([]sortKey, error) {
	expression, err := get.RelaxedJSONPathExpression(field)
	if err != nil {
		return nil, err
	}
	path := jsonpath.New("sorting").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return nil, err
	}
	keys, types := make([]sortKey, len(jobs)), map[string]bool{}
	for i := range jobs {
		fields, err := sortable(&jobs[i], around(&jobs[i]))
		if err != nil {
			return nil, err
		}
		found, err := path.FindResults(fields)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 || len(found[0]) == 0 {
			continue
		}
		value := found[0][0].Interface()
		if keys[i], err = newSortKey(value); err != nil {
			return nil, err
		}
		types[fmt.Sprintf("%T", value)] = true
	}
	switch len(types) {
	case 0:
		return nil, fmt.Errorf("couldn't find any field with path %q in the list of objects", expression)
	case 1:
		return keys, nil
	default:
		return nil, errUnsortable
	}
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
