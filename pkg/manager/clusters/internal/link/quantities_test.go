package link

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/jobferry/jobferry/pkg/util/frames"
)

// What stands for a quantity until it's encoded, and as long a one that keeps whoever compares it
// busy for ever.
const honest, hangs = "123456789", "1e9999999"

func node(quantity string) *corev1.Node {
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1e123456-7e99-4e99-9e99-1e99999e9999", Labels: map[string]string{"version": hangs}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse(quantity)}},
	}
}

func nodes(quantity string) *corev1.NodeList {
	return &corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{*node("1"), *node(quantity)}}
}

func sliceOf(quantity string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"},
		Spec: resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{{
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(quantity)}},
		}}},
	}
}

func emptyDir(quantity string) *corev1.Pod {
	size := resource.MustParse(quantity)
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		Spec:     corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}}}},
	}
}

func inJSON(t *testing.T, object apiruntime.Object) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func inEvent(t *testing.T, object []byte) string {
	t.Helper()
	content, err := (&metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return frame(uint32(len(content))) + string(content) //nolint:gosec // a few megabytes
}

// passes asks for an answer of a worker.
func passes(t *testing.T, path, contentType, body string) error {
	t.Helper()
	for _, piece := range []int{1, 100, 1 << 20} {
		resp := answer(t, path, contentType, body, piece) //nolint:bodyclose // answer closes it
		bound(informerRequest, resp, aHold(), func(*BoundError) {})
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if string(got) != body {
			t.Errorf("in pieces of %d: %q passes, want %q", piece, got, body)
		}
	}
	return nil
}

// TestQuantitiesThatHang: a worker's quantity that keeps whoever reads it busy isn't decoded, in
// whichever way it comes. The same text elsewhere is let through.
func TestQuantitiesThatHang(t *testing.T) {
	event := func(object string) string { return `{"type":"ADDED","object":` + object + `}` }
	for name, object := range map[string]func(string) apiruntime.Object{
		"in a map":        func(q string) apiruntime.Object { return node(q) },
		"in a list":       func(q string) apiruntime.Object { return nodes(q) },
		"in a map's type": func(q string) apiruntime.Object { return sliceOf(q) },
		"behind pointers": func(q string) apiruntime.Object { return emptyDir(q) },
	} {
		for quantity, refused := range map[string]bool{hangs: true, honest: false} {
			encoded := func(data []byte) string { return string(bytes.ReplaceAll(data, []byte(honest), []byte(quantity))) }
			inBinary, text := encoded(inProtobuf(t, object(honest))), encoded(inJSON(t, object(honest)))
			for as, err := range map[string]error{
				"protobuf":           passes(t, "/x", protobufType, inBinary),
				"protobuf, an event": passes(t, "/x?watch=true", protobufType+";stream=watch", strings.Repeat(inEvent(t, []byte(inBinary)), 2)),
				"JSON":               passes(t, "/x", jsonType, text),
				"JSON, an event":     passes(t, "/x?watch=true", jsonType, strings.Repeat(event(text), 2)),
			} {
				var broken *BoundError
				if errors.As(err, &broken) != refused {
					t.Errorf("%s, %s, %s: %v", name, quantity, as, err)
				}
			}
		}
	}
}

// TestTricksOfQuantities: what client-go decodes in spite of how it's written is found.
func TestTricksOfQuantities(t *testing.T) {
	trick := func(from, to string) func(t *testing.T) string {
		return func(t *testing.T) string {
			text := string(inJSON(t, node(honest)))
			if !strings.Contains(text, from) {
				t.Fatalf("no %s in %s", from, text)
			}
			return strings.Replace(text, from, to, 1)
		}
	}
	inJSONs := map[string]func(*testing.T) string{
		"spaces around it":     trick(honest, "\u00a0 "+hangs+" "),
		"a number":             trick(`"`+honest+`"`, hangs),
		"a sign":               trick(honest, "-1E+999999"),
		"a key twice":          trick(`"cpu":"`+honest+`"`, `"cpu":"`+hangs+`","cpu":"1"`),
		"no kind":              func(*testing.T) string { return `{"status":{"allocatable":{"cpu":"` + hangs + `"}}}` },
		"a kind nobody knows":  trick(`"kind":"Node"`, `"kind":"Nod"`),
		"very many digits":     trick(honest, strings.Repeat("9", 100_000)),
		"very many, behind it": trick(honest, "0."+strings.Repeat("0", 100_000)+"1"),
	}
	for name, text := range inJSONs {
		var broken *BoundError
		if err := passes(t, "/x", jsonType, strings.ReplaceAll(text(t), honest, hangs)); !errors.As(err, &broken) {
			t.Errorf("JSON, %s: %v", name, err)
		}
	}
	costly := strings.ReplaceAll(string(inJSON(t, node(honest))), honest, hangs)
	for name, event := range map[string]string{
		"twice, the last":     `{"type":"ADDED","object":{},"object":` + costly + `}`,
		"twice, the first":    `{"type":"ADDED","object":` + costly + `,"object":null}`,
		"an escape":           `{"type":"ADDED","\u006fbject":` + costly + `}`,
		"no kind":             `{"type":"ADDED","object":{"status":{"allocatable":{"cpu":"` + hangs + `"}}}}`,
		"no event":            costly,
		"an event and a Node": costly[:len(costly)-1] + `,"type":"ADDED","object":{}}`,
		"an event of an API":  `{"kind":"WatchEvent","apiVersion":"v1","type":"ADDED","object":` + costly + `}`,
	} {
		var broken *BoundError
		if err := passes(t, "/x?watch=true", jsonType, event); !errors.As(err, &broken) {
			t.Errorf("JSON, an event, %s: %v", name, err)
		}
	}
	object := bytes.ReplaceAll(inProtobuf(t, node(honest)), []byte(honest), []byte(hangs))
	const status = 3
	envelope := func(kind string, content []byte) string {
		raw, err := (&apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: content}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return string(frames.Magic) + string(raw)
	}
	var whole apiruntime.Unknown
	if err := whole.Unmarshal(object[len(frames.Magic):]); err != nil {
		t.Fatal(err)
	}
	at := bytes.IndexByte(whole.Raw, status<<3|2)
	for at >= 0 && !isStatus(whole.Raw[at:]) {
		next := bytes.IndexByte(whole.Raw[at+1:], status<<3|2)
		at += 1 + next
	}
	number := func(tag []byte) []byte {
		return append(append(bytes.Clone(whole.Raw[:at]), tag...), whole.Raw[at+1:]...)
	}
	// more than 64 bits
	beyond := []byte{status<<3 | 2 | 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7e}
	for name, body := range map[string]string{
		"no kind":                     envelope("", whole.Raw),
		"a field's number of 36 bits": envelope("Node", number(binary.AppendUvarint(nil, 1<<35|status<<3|2))),
		"a field's number of 70 bits": envelope("Node", number(beyond)),
	} {
		var broken *BoundError
		if err := passes(t, "/x", protobufType, body); !errors.As(err, &broken) {
			t.Errorf("protobuf, %s: %v", name, err)
		}
	}
}

// TestTextsThatLookLikeQuantities: a commit in a label does, and is none in an object of any kind
// that is read. Client-go decodes nothing of Karpenter's.
func TestTextsThatLookLikeQuantities(t *testing.T) {
	const commit = "7e10345"
	object := func(apiVersion, kind string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","metadata":{"name":"n","labels":{"git-commit":"` + commit + `"}}}`
	}
	list := func(apiVersion, kind string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `List","metadata":{},"items":[` + object(apiVersion, kind) + `]}`
	}
	event := func(object string) string { return `{"type":"ADDED","object":` + object + `}` }
	for _, kind := range [][2]string{{"v1", "Pod"}, {"batch/v1", "Job"}, {"karpenter.sh/v1", "NodePool"}, {"karpenter.sh/v1", "NodeClaim"}} {
		if err := passes(t, "/x", jsonType, list(kind[0], kind[1])); err != nil {
			t.Errorf("a list of %ss: %v", kind[1], err)
		}
		if err := passes(t, "/x?watch=true", jsonType, strings.Repeat(event(object(kind[0], kind[1])), 2)); err != nil {
			t.Errorf("events of %ss: %v", kind[1], err)
		}
	}
}

// TestNeitherNumberNorText: a small Job with a port that can't be encoded in JSON isn't decoded, in
// whichever way it comes. A number and a text are.
func TestNeitherNumberNorText(t *testing.T) {
	for port, refused := range map[intstr.IntOrString]bool{
		intstr.FromInt32(80): false, intstr.FromString("http"): false,
		{Type: 2}: true, {Type: -1}: true, {Type: math.MaxInt64}: true,
	} {
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: port}}}
		job := &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{LivenessProbe: probe}},
			}}},
		}
		text := inProtobuf(t, job)
		for as, err := range map[string]error{
			"an answer": passes(t, "/x", protobufType, string(text)),
			"an event":  passes(t, "/x?watch=true", protobufType+";stream=watch", strings.Repeat(inEvent(t, text), 2)),
		} {
			var broken *BoundError
			if errors.As(err, &broken) != refused {
				t.Errorf("%+v, %s: %v", port, as, err)
			}
		}
	}
}

// isStatus reports whether a field reaches to the end.
func isStatus(field []byte) bool {
	length, n := binary.Uvarint(field[1:])
	return n > 0 && int(length) == len(field)-1-n //nolint:gosec // a few bytes
}
