package recentfields

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// spec reads the spec of a Job.
func spec(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// specJSON is the spec of a Job as an API server sends it.
func specJSON(t *testing.T, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// plain has what an API server fills in, and fields that users know.
const plain = `
parallelism: 2
podReplacementPolicy: TerminatingOrFailed
managedBy: jobferry.dev/dispatcher
selector: {matchLabels: {anything: x}}
template:
  metadata: {labels: {anything: x}, creationTimestamp: null}
  spec:
    restartPolicy: Never
    initContainers: [{name: proxy, restartPolicy: Always}]
    containers:
    - name: main
      image: busybox
      env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}]
      resources: {requests: {cpu: 1, example.com/anything: 1}}
      securityContext: {procMount: Default}
    volumes: [{name: scratch, emptyDir: {}}]
`

func TestOf(t *testing.T) {
	for name, row := range map[string]struct {
		spec string
		want []string
	}{
		"plain":                 {plain, nil},
		"of the Job":            {`{scheduling: {schedulingPolicy: {gang: {}}}}`, []string{"spec.scheduling"}},
		"not set":               {`{scheduling: null}`, nil},
		"of the Pod":            {`{template: {spec: {schedulingGroup: {podGroupName: g}}}}`, []string{"spec.template.spec.schedulingGroup"}},
		"of a container":        {`{template: {spec: {containers: [{name: a}, {restartPolicyRules: []}]}}}`, []string{"spec.template.spec.containers[*].restartPolicyRules"}},
		"far below":             {`{template: {spec: {containers: [{livenessProbe: {grpc: {port: 1, mode: TLS}}}]}}}`, []string{"spec.template.spec.containers[*].livenessProbe.grpc.mode"}},
		"in an inlined type":    {`{template: {spec: {volumes: [{name: v, image: {reference: r}}]}}}`, []string{"spec.template.spec.volumes[*].image"}},
		"one value":             {`{podReplacementPolicy: Failed}`, []string{"spec.podReplacementPolicy"}},
		"for sidecars only":     {`{template: {spec: {containers: [{restartPolicy: Always}], initContainers: [{restartPolicy: Never}]}}}`, []string{"spec.template.spec.containers[*].restartPolicy", "spec.template.spec.initContainers[*].restartPolicy"}},
		"that nobody knows yet": {`{future: {a: 1}, template: {future: 1, spec: {future: 1}}}`, []string{"spec.future", "spec.template.future", "spec.template.spec.future"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, Of(specJSON(t, row.spec)).Paths()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEqual(t *testing.T) {
	one, other := `{template: {spec: {containers: [{future: 1}, {name: b}]}}}`, `{template: {spec: {containers: [{future: 1}, {name: c}]}}}`
	if !Of(specJSON(t, one)).Equal(Of(specJSON(t, other))) {
		t.Error("a field that isn't recent makes a difference")
	}
	for _, changed := range []string{`{template: {spec: {containers: [{future: 2}]}}}`, `{template: {spec: {containers: [{future: 1}, {future: 1}]}}}`, plain} {
		if Of(specJSON(t, one)).Equal(Of(specJSON(t, changed))) {
			t.Errorf("%s is equal", changed)
		}
	}
}

func TestLost(t *testing.T) {
	for name, row := range map[string]struct {
		sent, answer string
		want         []string
	}{
		"nothing":               {`{future: {a: 1}}`, `{future: {a: 1}, parallelism: 1}`, nil},
		"more":                  {`{future: {a: 1}}`, `{future: {a: 1, b: 2}}`, nil},
		"another value":         {`{future: 1}`, `{future: 2}`, nil},
		"all":                   {`{future: 1}`, `{}`, []string{"spec.future"}},
		"a part":                {`{future: {a: {b: 1, c: 1}}}`, `{future: {a: {b: 1}}}`, []string{"spec.future"}},
		"an element":            {`{future: [{a: 1}, {a: 2}]}`, `{future: [{a: 1}]}`, []string{"spec.future"}},
		"empty":                 {`{future: {a: {}}}`, `{future: {}}`, []string{"spec.future"}},
		"zero":                  {`{future: {a: 0, b: false, c: "", d: []}}`, `{future: {}}`, nil},
		"what isn't recent":     {`{parallelism: 1}`, `{}`, nil},
		"in a container":        {`{template: {spec: {containers: [{name: a, future: 1}]}}}`, `{template: {spec: {containers: [{name: proxy}, {name: a}]}}}`, []string{"spec.template.spec.containers[*].future"}},
		"container moved":       {`{template: {spec: {containers: [{name: a, future: 1}]}}}`, `{template: {spec: {containers: [{name: proxy}, {name: a, future: 1}]}}}`, nil},
		"container gone":        {`{template: {spec: {containers: [{name: a, future: 1}]}}}`, `{template: {spec: {containers: [{name: b, future: 1}]}}}`, []string{"spec.template.spec.containers[*].future"}},
		"no answer":             {`{future: 1}`, `null`, []string{"spec.future"}},
		"an answer of nonsense": {`{future: {a: 1}, template: {spec: {future: 1}}}`, `{future: [], template: 1}`, []string{"spec.future", "spec.template.spec.future"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, Lost(spec(t, row.sent), spec(t, row.answer))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGraft(t *testing.T) {
	for name, row := range map[string]struct{ sent, from, to, want string }{
		"nothing changes":    {`{a: 1, new: 1}`, `{a: 1}`, `{a: 1}`, `{a: 1, new: 1}`},
		"a value":            {`{a: 1, new: 1}`, `{a: 1}`, `{a: 2}`, `{a: 2, new: 1}`},
		"one more":           {`{new: 1}`, `{}`, `{a: 2}`, `{a: 2, new: 1}`},
		"one less":           {`{a: {new: 1}, b: {new: 1}}`, `{a: {}, b: {}}`, `{b: {}}`, `{b: {new: 1}}`},
		"below":              {`{a: {b: 1, new: 1}}`, `{a: {b: 1}}`, `{a: {b: 2}}`, `{a: {b: 2, new: 1}}`},
		"a named element":    {`{l: [{name: x, new: 1}, {name: y}]}`, `{l: [{name: x}, {name: y}]}`, `{l: [{name: z}, {name: x, a: 1}]}`, `{l: [{name: z}, {name: x, a: 1, new: 1}]}`},
		"elements less":      {`{l: [{a: 1, new: 1}, {a: 2, new: 2}]}`, `{l: [{a: 1}, {a: 2}]}`, `{l: [{a: 2}]}`, `{l: [{a: 2, new: 2}]}`},
		"an element changes": {`{l: [{a: 1, new: 1}, {a: 2, new: 2}]}`, `{l: [{a: 1}, {a: 2}]}`, `{l: [{a: 1}, {a: 3}]}`, `{l: [{a: 1, new: 1}, {a: 3, new: 2}]}`},
		"elements change":    {`{l: [{a: 1, new: 1}]}`, `{l: [{a: 1}]}`, `{l: [{a: 3}, {a: 4}]}`, `{l: [{a: 3}, {a: 4}]}`},
		"a default":          {`{a: false, b: 1}`, `{b: 1}`, `{a: true}`, `{a: true}`},
	} {
		t.Run(name, func(t *testing.T) {
			sent, from, to := spec(t, row.sent), spec(t, row.from), spec(t, row.to)
			kept := runtime.DeepCopyJSON(sent)
			if diff := cmp.Diff(spec(t, row.want), Graft(sent, from, to)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(kept, sent); diff != "" {
				t.Errorf("what was sent has changed:\n%s", diff)
			}
		})
	}
}
