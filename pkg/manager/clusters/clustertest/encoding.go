package clustertest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// decode reads the object that a request brings.
func decode(r request) (Object, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	kind := kinds[r.resource]
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &kind, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	o, is := decoded.(Object)
	if !is {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T isn't stored", decoded))
	}
	return o, nil
}

// nextOf makes a function that applies what a request brings, an object or a patch.
func nextOf(r request) (func(Object) (Object, error), error) {
	if r.Method == http.MethodPut {
		o, err := decode(r)
		return func(Object) (Object, error) { return o, nil }, err
	}
	patch, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	of, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return func(old Object) (Object, error) {
		before, err := json.Marshal(old)
		if err != nil {
			return nil, err
		}
		after, err := patched(types.PatchType(of), before, patch, old)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		o := newObject(kinds[r.resource])
		return o, json.Unmarshal(after, o)
	}, err
}

func patched(of types.PatchType, before, patch []byte, example Object) ([]byte, error) {
	switch of {
	case types.MergePatchType:
		return jsonpatch.MergePatch(before, patch)
	case types.StrategicMergePatchType:
		return strategicpatch.StrategicMergePatch(before, patch, example)
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		return operations.Apply(before)
	default:
		return nil, fmt.Errorf("patches of type %q aren't simulated", of)
	}
}

// selectorOf is what a list or a watch asks for.
func selectorOf(r request) (func(*stored) bool, error) {
	query := r.URL.Query()
	byLabels, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o *stored) bool {
		within := r.name.Namespace == "" || r.name.Namespace == o.name.Namespace
		return within && byLabels.Matches(o.labels) && byFields.Matches(o.fields)
	}, nil
}

func readsProtobuf(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Accept"), runtime.ContentTypeProtobuf)
}

// send sends one object.
func send(w http.ResponseWriter, req *http.Request, code int, o *stored) {
	content, body := runtime.ContentTypeProtobuf, o.protobuf
	if !readsProtobuf(req) {
		content, body = runtime.ContentTypeJSON, o.json
	}
	w.Header().Set("Content-Type", content)
	w.WriteHeader(code)
	_, _ = w.Write(body()) // fails with the connection only
}

// sendList sends a list. In protobuf, each has its metadata as field 1, and its items as field 2.
func sendList(w http.ResponseWriter, r request, about metav1.ListMeta, items []*stored) {
	kind := kinds[r.resource]
	kind.Kind += "List"
	if !readsProtobuf(r.Request) {
		texts := make([]json.RawMessage, 0, len(items))
		for _, o := range items {
			texts = append(texts, o.json())
		}
		version, name := kind.ToAPIVersionAndKind()
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		// as above
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": version, "kind": name, "metadata": about, "items": texts})
		return
	}
	metadata, err := about.Marshal()
	if err != nil {
		panic(err) // it has strings only
	}
	raw := appendField(nil, 1, metadata)
	for _, o := range items {
		raw = appendField(raw, 2, o.raw)
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_, _ = w.Write(enveloped(kind, raw)) // as above
}

// appendField appends a field that is a message.
func appendField(to []byte, number uint64, message []byte) []byte {
	const lengthDelimited = 2
	to = binary.AppendUvarint(to, number<<3|lengthDelimited)
	to = binary.AppendUvarint(to, uint64(len(message)))
	return append(to, message...)
}
