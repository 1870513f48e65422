package link

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answersWith is a worker that answers each request with what it makes of the object.
type answersWith struct {
	client.Client
	change func(*batchv1.Job)
}

func (a answersWith) answer(object client.Object) error {
	a.change(object.(*batchv1.Job))
	return nil
}

func (a answersWith) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetNamespace(key.Namespace)
	into.SetName(key.Name)
	return a.answer(into)
}

func (a answersWith) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	return a.answer(object)
}

func (a answersWith) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	return a.answer(object)
}

func (a answersWith) SubResource(string) client.SubResourceClient { return statusWith{answers: a} }

type statusWith struct {
	client.SubResourceClient
	answers answersWith
}

func (s statusWith) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.answers.answer(object)
}

func (a answersWith) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return a.answer(object)
}

// Names and UIDs of a worker's answers are kept, so they're those of the object that was asked
// about, and no longer than API servers make them.
func TestAnswersAreAboutTheirObject(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*batchv1.Job)
		want   error
	}{
		"as it is":          {func(j *batchv1.Job) { j.UID, j.ResourceVersion = "4d2f3f6e-9c56-4b51-8a33-6c3cd6f1a2b4", "123" }, nil},
		"of another name":   {func(j *batchv1.Job) { j.Name = "another" }, errNames},
		"elsewhere":         {func(j *batchv1.Job) { j.Namespace = "elsewhere" }, errNames},
		"with a long UID":   {func(j *batchv1.Job) { j.UID = types.UID(strings.Repeat("x", 1<<20)) }, errNames},
		"of a long version": {func(j *batchv1.Job) { j.ResourceVersion = strings.Repeat("1", 1<<20) }, errNames},
	} {
		job := func() *batchv1.Job {
			return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"}}
		}
		c := heldClient{answersWith{change: row.change}, &Link{large: semaphore.NewWeighted(1)}}
		for verb, err := range map[string]error{
			"get":    c.Get(t.Context(), client.ObjectKeyFromObject(job()), &batchv1.Job{}),
			"create": c.Create(t.Context(), job()),
			"update": c.Update(t.Context(), job()),
			"patch":  c.Patch(t.Context(), job(), client.RawPatch(types.MergePatchType, nil)),
			"status": c.Status().Patch(t.Context(), job(), client.RawPatch(types.MergePatchType, nil)),
		} {
			if !errors.Is(err, row.want) {
				t.Errorf("%s, %s: %v", verb, name, err)
			}
		}
	}
}
