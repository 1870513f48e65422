package job

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// wholeAnswer is what a client reads a Job into with all that the API server sends. The client asks
// for JSON, as the answer has a kind and no type.
type wholeAnswer struct {
	unstructured.Unstructured // the kind and name that are asked for
	whole                     *mirror.Whole
}

func newWholeAnswer(key types.NamespacedName) *wholeAnswer {
	a := &wholeAnswer{}
	a.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	a.SetNamespace(key.Namespace)
	a.SetName(key.Name)
	return a
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *wholeAnswer) UnmarshalJSON(sent []byte) (err error) {
	a.whole, err = mirror.NewWhole(sent)
	return err
}

// read returns a Job past the cache, as far as the types know it.
func (a *allowance) read(ctx context.Context, of types.UID) (*batchv1.Job, error) {
	return a.ask(of, func(answer client.Object) error { return a.live.Get(ctx, a.key, answer) })
}

// patchStatus patches a Job's status, and returns the answer as far as the types know it.
func (a *allowance) patchStatus(ctx context.Context, of types.UID, patch client.Patch) (*batchv1.Job, error) {
	return a.ask(of, func(answer client.Object) error { return a.client.Status().Patch(ctx, answer, patch) })
}

// readWhole returns a Job past the cache, with all that the API server sends.
func (a *allowance) readWhole(ctx context.Context, of types.UID) (*mirror.Whole, error) {
	return a.readWeighed(ctx, a.weight(of))
}

// readWeighed is readWhole of a Job of some weight.
func (a *allowance) readWeighed(ctx context.Context, weight int64) (*mirror.Whole, error) {
	return a.askWhole(weight, func(answer client.Object) error { return a.live.Get(ctx, a.key, answer) })
}

// patchWhole is patchStatus with all that the API server sends in the answer.
func (a *allowance) patchWhole(ctx context.Context, of types.UID, patch client.Patch) (*mirror.Whole, error) {
	return a.askWhole(a.weight(of), func(answer client.Object) error { return a.client.Status().Patch(ctx, answer, patch) })
}

// ask has a request made whose answer is the Job. A large one is read as JSON: protobuf takes
// several times as much while its lists grow.
func (a *allowance) ask(of types.UID, request func(answer client.Object) error) (*batchv1.Job, error) {
	if weight := a.weight(of); weight > packed.SmallWeight {
		whole, err := a.askWhole(weight, request)
		if err != nil {
			return nil, err
		}
		return whole.Job, nil
	}
	answer := namedBy(a.key)
	err := request(answer)
	if err == nil {
		a.correct(packed.WeightOf(answer))
	}
	return answer, err
}

// askWhole is ask with all that the API server sends. Requests for large Jobs follow each other.
func (a *allowance) askWhole(weight int64, request func(answer client.Object) error) (*mirror.Whole, error) {
	if !a.reserve(weight) {
		return nil, errNoMemory
	}
	if weight > packed.SmallWeight {
		a.reading.Lock()
		defer a.reading.Unlock()
	}
	answer := newWholeAnswer(a.key)
	if err := request(answer); err != nil {
		return nil, err
	}
	a.correct(packed.WeightOf(answer.whole.Job))
	return answer.whole, nil
}
