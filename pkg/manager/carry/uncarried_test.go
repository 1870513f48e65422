package carry

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestUncarried(t *testing.T) {
	spec := corev1.PodSpec{
		Subdomain: "peers", ServiceAccountName: "a", ImagePullSecrets: []corev1.LocalObjectReference{local("s")},
		Volumes: in(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("c"), Optional: ptr.To(true)}}).Volumes,
	}
	rows := map[string]struct {
		spec    corev1.PodSpec
		carried []Kind
		want    []string
	}{
		"nothing is named":    {},
		"nothing is carried":  {spec: spec, want: []string{`service "peers"?`, `configmap "c"?`, `secret "s"?`}},
		"some is":             {spec: spec, carried: []Kind{ConfigMap}, want: []string{`service "peers"?`, `secret "s"?`}},
		"all but the Service": {spec: spec, carried: []Kind{ConfigMap, Secret}, want: []string{`service "peers"?`}},
		"all is":              {spec: spec, carried: []Kind{ConfigMap, Secret, Service}},
		"what Pods wait for":  {spec: corev1.PodSpec{ServiceAccountName: "a"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := words(Uncarried(&corev1.PodTemplateSpec{Spec: row.spec}, row.carried)); !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestNotesAboutUncarried(t *testing.T) {
	for _, row := range []struct {
		ref             Ref
		lacking, hidden string
	}{
		{Ref{Kind: Service, Name: "s"}, `service "s" isn't there`, "may not see"},
		{Ref{Kind: Secret, Name: "x", Optional: true}, "the WorkerCluster's spec.carry lacks Secret: the Job's Pods start without it", ""},
	} {
		if got := row.ref.Lacking(); !strings.Contains(got, row.lacking) {
			t.Errorf("%s: %q, want %q", row.ref, got, row.lacking)
		}
		checkText(t, row.ref.String(), row.ref.Hidden(), row.hidden)
	}
}
