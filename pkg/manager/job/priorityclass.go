package job

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/line"
)

// priorityClassOf reads the PriorityClass of a Job's Pods from the cache. A class that doesn't
// exist on the hub counts as none.
func priorityClassOf(ctx context.Context, cache client.Reader, job *batchv1.Job) line.PriorityClass {
	if name := job.Spec.Template.Spec.PriorityClassName; name != "" {
		var class schedulingv1.PriorityClass
		if err := cache.Get(ctx, types.NamespacedName{Name: name}, &class); err != nil {
			return line.PriorityClass{}
		}
		return line.PriorityClass{Name: class.Name, Value: class.Value}
	}
	var all schedulingv1.PriorityClassList
	if err := cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return line.PriorityClass{}
	}
	standard := line.PriorityClass{}
	for i := range all.Items { // of several defaults the API server takes the lowest
		c := &all.Items[i]
		if c.GlobalDefault && (standard.Name == "" || c.Value < standard.Value) {
			standard = line.PriorityClass{Name: c.Name, Value: c.Value}
		}
	}
	return standard
}
