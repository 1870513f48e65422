package packed

import (
	_ "embed"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// usualBytes are two Jobs, with what hub Jobs and mirrors have. What isn't in them only takes more
// memory.
func usualBytes() []byte {
	hub, mirror := usualJob(), usualJob()
	hub.Finalizers = []string{v1alpha1.FinalizerMirror}
	hub.Annotations = map[string]string{
		v1alpha1.AnnotationClusterSelector: "tier=", v1alpha1.AnnotationClusterPreference: "tier=; * after 5m",
		v1alpha1.AnnotationMaxClusters: v1alpha1.MaxClustersAll,
	}
	hubstate.Set(hub, hubstate.Changes{
		hubstate.Cluster: "worker", hubstate.MovedFrom: "worker", hubstate.ShardsState: "{}",
		hubstate.Usage: `[{"worker":"worker","uid":"","requests":{"cpu":"1","memory":"1Gi"},"seconds":1.5,"succeeded":1.5,` +
			`"count":1,"pods":1,"since":1790000000,"at":1790000000.5,"ahead":0.5,"newest":1790000000,"ended":1790000000}]`,
	})
	hub.Spec.ManagedBy, hub.Spec.TTLSecondsAfterFinished = ptr.To(v1alpha1.ManagedByDispatcher), ptr.To[int32](600)
	mirror.Labels[v1alpha1.LabelOrigin] = ""
	mirror.Annotations = map[string]string{
		v1alpha1.AnnotationHubUID: "", v1alpha1.AnnotationIndexes: "0-", v1alpha1.AnnotationIndexesObserved: "0-",
		v1alpha1.AnnotationProjected: `{"managedBy":"` + v1alpha1.ManagedByWorker + `","labels":["app"],"scheduling":"44136fa355b3678a","resources":"","generation":1}`,
	}
	mirror.Spec.Template.Labels[v1alpha1.LabelMirrorID] = ""
	mirror.Spec.ManagedBy = ptr.To(v1alpha1.ManagedByWorker)
	var data []byte
	for _, job := range []*batchv1.Job{mirror, hub} {
		proto, err := job.Marshal()
		if err != nil {
			panic(fmt.Sprintf("marshal a Job: %v", err)) // can't be: it's a constant
		}
		data = append(data, proto...)
	}
	return data
}

//go:embed usual.yaml
var usualYAML []byte

// usualJob is what an API server makes of a Job with one container, when it has ended.
func usualJob() *batchv1.Job {
	job := &batchv1.Job{}
	if err := yaml.UnmarshalStrict(usualYAML, job); err != nil {
		panic(fmt.Sprintf("read usual.yaml: %v", err)) // can't be: it's a constant
	}
	return job
}
