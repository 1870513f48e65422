package carry

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func local(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

// in makes a template with one volume.
func in(source corev1.VolumeSource) corev1.PodSpec {
	return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}
}

// env makes a template with one container, with one variable.
func env(from *corev1.EnvVarSource) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "V", ValueFrom: from}}}}}
}

func envFrom(from corev1.EnvFromSource) []corev1.EnvFromSource { return []corev1.EnvFromSource{from} }

// words lists references; optional ones end with "?".
func words(refs []Ref) []string {
	var texts []string
	for _, ref := range refs {
		text := ref.String()
		if ref.Optional {
			text += "?"
		}
		texts = append(texts, text)
	}
	return texts
}

func TestReferences(t *testing.T) {
	secret := ptr.To(local("s"))
	fromConfigMap := envFrom(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("c")}})
	optionalSecret := envFrom(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("s"), Optional: ptr.To(true)}})
	rows := map[string]struct {
		given corev1.PodSpec
		want  []string
	}{
		"nothing":                       {},
		"a subdomain":                   {corev1.PodSpec{Subdomain: "peers"}, []string{`service "peers"?`}},
		"a variable from a ConfigMap":   {env(&corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("c")}}), []string{`configmap "c"`}},
		"a variable from a Secret":      {env(&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("s")}}), []string{`secret "s"`}},
		"an optional key":               {env(&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("s"), Optional: ptr.To(true)}}), []string{`secret "s"?`}},
		"a variable from a field":       {env(&corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}), nil},
		"a variable with a value":       {env(nil), nil},
		"all variables":                 {corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: fromConfigMap}}}, []string{`configmap "c"`}},
		"all variables, optional":       {corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: optionalSecret}}}, []string{`secret "s"?`}},
		"an init container":             {corev1.PodSpec{InitContainers: []corev1.Container{{EnvFrom: fromConfigMap}}}, []string{`configmap "c"`}},
		"an ephemeral container":        {corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{EnvFrom: fromConfigMap}}}}, []string{`configmap "c"`}},
		"a ConfigMap volume":            {in(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("c")}}), []string{`configmap "c"`}},
		"an optional ConfigMap volume":  {in(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("c"), Optional: ptr.To(true)}}), []string{`configmap "c"?`}},
		"a Secret volume":               {in(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}), []string{`secret "s"`}},
		"a Secret volume without name":  {in(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), nil},
		"azureFile":                     {in(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s"}}), []string{`secret "s"`}},
		"csi":                           {in(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: secret}}), []string{`secret "s"`}},
		"csi without a Secret":          {in(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}), nil},
		"flexVolume":                    {in(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: secret}}), []string{`secret "s"`}},
		"iscsi":                         {in(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: secret}}), []string{`secret "s"`}},
		"rbd":                           {in(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: secret}}), []string{`secret "s"`}},
		"cephfs":                        {in(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: secret}}), []string{`secret "s"`}},
		"cinder":                        {in(corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{SecretRef: secret}}), []string{`secret "s"`}},
		"scaleIO":                       {in(corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: secret}}), []string{`secret "s"`}},
		"storageos":                     {in(corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: secret}}), []string{`secret "s"`}},
		"an emptyDir":                   {in(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), nil},
		"image pull secrets":            {corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{local("s")}}, []string{`secret "s"?`}},
		"a ServiceAccount":              {corev1.PodSpec{ServiceAccountName: "a"}, []string{`serviceaccount "a"`}},
		"the default ServiceAccount":    {corev1.PodSpec{ServiceAccountName: "default"}, nil},
		"optional once, required once":  {corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: optionalSecret}}, Volumes: in(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}).Volumes}, []string{`secret "s"`}},
		"required once, optional twice": {corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{*secret}, Volumes: in(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: secret}}).Volumes, Containers: []corev1.Container{{EnvFrom: optionalSecret}}}, []string{`secret "s"`}},
		"projected": {in(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: local("s")}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("c"), Optional: ptr.To(true)}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
		}}}), []string{`configmap "c"?`, `secret "s"`}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := words(References(&corev1.PodTemplateSpec{Spec: row.given})); !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		ServiceAccountName: "a",
		Volumes:            in(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("c")}}).Volumes,
	}}
	rows := map[string]struct{ allowed, want []Kind }{
		"nothing is allowed":                   {nil, nil},
		"what isn't referred to":               {[]Kind{Secret}, nil},
		"what is":                              {[]Kind{ConfigMap, Secret}, []Kind{ConfigMap}},
		"Secrets along with a ServiceAccount":  {[]Kind{ServiceAccount, Secret}, []Kind{Secret, ServiceAccount}},
		"a ServiceAccount without its Secrets": {[]Kind{ServiceAccount}, []Kind{ServiceAccount}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := Kinds(template, row.allowed)
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
			for _, ref := range Select(References(template), got) {
				if !slices.Contains(row.want, ref.Kind) {
					t.Errorf("selected %s", ref)
				}
			}
		})
	}
}

// A Pod may have 100,000 volumes and containers, and its references are looked for again and again,
// for each worker of a divided Job: that takes little more than a copy of it.
func TestReferencesOfVeryManyVolumesAreCheap(t *testing.T) {
	var template corev1.PodTemplateSpec
	spec := &template.Spec
	for i := range 20_000 {
		name := fmt.Sprint("e", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		spec.Containers = append(spec.Containers, corev1.Container{Name: name, Image: "i"})
	}
	spec.Volumes = append(spec.Volumes, in(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}).Volumes...)
	shortest := func(call func()) time.Duration {
		least := time.Hour
		for range 10 {
			start := time.Now()
			call()
			least = min(least, time.Since(start))
		}
		return least
	}
	refs := References(&template)
	if len(refs) != 1 || refs[0].Name != "s" {
		t.Errorf("got %v", refs)
	}
	copied, read := shortest(func() { spec.DeepCopy() }), shortest(func() { References(&template) })
	if read > 5*copied {
		t.Errorf("references are found in %s, a copy takes %s", read, copied)

	}
}
