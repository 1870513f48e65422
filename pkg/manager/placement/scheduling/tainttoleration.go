package scheduling

import corev1 "k8s.io/api/core/v1"

var tainted = Reason{"TaintToleration", "node(s) had untolerated taint(s)", "spec.template.spec.tolerations"}

func taintToleration(j *Job, v view) filter {
	return func(p *place) *Reason {
		taint := v.taint(p.node, j)
		// A Pod that its template binds doesn't pass through the scheduler, which reads NoSchedule.
		if taint == nil || j.spec.NodeName != "" && taint.Effect != corev1.TaintEffectNoExecute {
			return nil
		}
		return &tainted
	}
}
