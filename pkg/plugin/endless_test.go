package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A container that never ends its line: what is held of it is bounded.
func TestEndlessLines(t *testing.T) {
	h := newHub(t)
	h.answers[subPath+"log"] = func(url.Values) string { return strings.Repeat("x", 3*maxLine) + "\nlast\n" }
	said := h.run("logs", "shards", "--prefix", "--index", "0")
	lines := strings.Split(strings.TrimSuffix(said.out, "\n"), "\n")
	if said.code != 0 || len(lines) != 5 || !strings.HasSuffix(lines[4], "] last") {
		t.Fatalf("code %d, %d lines: %.200s", said.code, len(lines), said.err)
	}
	for _, line := range lines {
		if len(line) > maxLine+100 || line[0] != '[' {
			t.Errorf("a line of %d bytes: %.50s", len(line), line)
		}
	}
}

// A worker's API server that never ends an answer.
func TestEndlessAnswers(t *testing.T) {
	h := newHub(t)
	h.answers[subPath+"pods"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`)
		forever(w)
	})
	if said := h.run("pods", "shards"); said.code != exitFailed || !strings.Contains(said.err, "larger than 64 MiB") {
		t.Errorf("code %d: %.200s", said.code, said.err)
	}
}

// Of very many large objects that a worker says are the hub's, the names are held.
func TestLargeObjectsOfAWorker(t *testing.T) {
	pages, held := 0, int64(0)
	before := costtest.Heap()
	worker := interceptor.NewClient(fake.NewClientBuilder().WithScheme(access.Scheme).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			roles, is := list.(*rbacv1.RoleBindingList)
			if pages++; !is || pages > 40 {
				return nil
			}
			list.SetContinue(fmt.Sprint(pages))
			for range 25 {
				roles.Items = append(roles.Items, rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
					Namespace: "team", Name: "hub", Annotations: map[string]string{"a": string(make([]byte, 100<<10))},
				}})
			}
			return nil
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			if held == 0 {
				held = costtest.Heap() - before
			}
			if object.GetName() != "hub" || object.GetNamespace() != "team" {
				t.Errorf("%s is deleted", client.ObjectKeyFromObject(object))
			}
			return nil
		},
	})
	streams, _, _, said := genericiooptions.NewTestIOStreams()
	err := (&cli{IOStreams: streams}).removeRoles(t.Context(), worker, "hub", func(string) bool { return false })
	if err != nil || held > 16<<20 || strings.Count(said.String(), "worker: RoleBinding team/hub removed") != 40*25 {
		t.Errorf("%v, %d MiB are held, it says %.100s", err, held>>20, said)
	}
}

// A list of a worker that has no end isn't read for ever, whether its pages are empty or full of
// what is kept.
func TestEndlessLists(t *testing.T) {
	for name, perPage := range map[string]int{"empty": 0, "kept": 25} {
		var asked atomic.Int64 // pages are read ahead, also of a list that nobody reads on
		worker := interceptor.NewClient(fake.NewClientBuilder().WithScheme(access.Scheme).Build(), interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				page := asked.Add(1)
				if page > maxOfHub {
					return errors.New("asked again and again")
				}
				list.SetContinue(fmt.Sprint(page))
				for range perPage {
					roles := list.(*rbacv1.RoleBindingList)
					roles.Items = append(roles.Items, rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hub"}})
				}
				return nil
			},
		})
		streams, _, _, _ := genericiooptions.NewTestIOStreams()
		c := &cli{IOStreams: streams}
		err := c.removeRoles(t.Context(), worker, "hub", func(string) bool { return true })
		if most := 100 + perPage*maxOfHub/(25*25); err == nil || asked.Load() > int64(most) {
			t.Errorf("%s: %d pages are read, %v", name, asked.Load(), err)
		}
	}
}
