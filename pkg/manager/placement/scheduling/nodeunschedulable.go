package scheduling

import corev1 "k8s.io/api/core/v1"

var cordoned = Reason{"NodeUnschedulable", "node(s) were unschedulable", "spec.template.spec.tolerations"}

func nodeUnschedulable(j *Job, v view) filter {
	// A Pod that its template binds doesn't pass through the scheduler.
	if j.spec.NodeName != "" || j.tolerates(&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return nil
	}
	return func(p *place) *Reason {
		if v.cordoned(p.node) {
			return &cordoned
		}
		return nil
	}
}
