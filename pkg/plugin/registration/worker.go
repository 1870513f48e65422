package registration

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/workeraccess"
)

// systemNamespace is Jobferry's own in the worker. Other hubs and jobferry-worker have objects in
// it, too: its labels name no hub. No Pod in it gets hold of a node.
func systemNamespace() *corev1.Namespace {
	labels := namespaces.Restricted.Labels(nil)
	labels[labelPartOf] = partOf
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SystemNamespace, Labels: labels}}
}

// Worker returns the objects in the worker, in the order in which they are created.
func (r Request) Worker() []client.Object {
	rules := workeraccess.For(r.access())
	objects := []client.Object{
		systemNamespace(),
		&corev1.ServiceAccount{ObjectMeta: r.meta(r.AccountName(), v1alpha1.SystemNamespace)},
	}
	if r.AllNamespaces {
		objects = append(objects, r.clusterRole(workeraccess.ClusterRules(rules))...)
	} else {
		objects = append(objects, r.clusterRole(workeraccess.LimitedClusterRules(rules))...)
	}
	for _, namespace := range r.Namespaces {
		// Its labels are the admin's.
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		objects = append(objects, r.role(namespace, workeraccess.JobRules(rules))...)
	}
	if inOurs := workeraccess.NamespaceRules(rules); len(inOurs) > 0 {
		objects = append(objects, r.role(v1alpha1.SystemNamespace, inOurs)...)
	}
	objects = append(objects, r.lease(r.origin().WriterLease()))
	if r.Spec.JobController == v1alpha1.JobControllerEmbedded {
		objects = append(objects, r.lease(r.origin().FenceLease()))
	}
	if !r.Bound() {
		objects = append(objects, r.tokenSecret())
	}
	return objects
}

func (r Request) clusterRole(rules []rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: r.meta(r.base(), ""), Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: r.meta(r.base(), ""), RoleRef: r.roleRef("ClusterRole"), Subjects: r.subjects()},
	}
}

func (r Request) role(namespace string, rules []rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&rbacv1.Role{ObjectMeta: r.meta(r.base(), namespace), Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: r.meta(r.base(), namespace), RoleRef: r.roleRef("Role"), Subjects: r.subjects()},
	}
}

// HasRole reports whether the registration has a Role in a namespace.
func (r Request) HasRole(namespace string) bool {
	return slices.ContainsFunc(r.Worker(), func(o client.Object) bool {
		_, isRole := o.(*rbacv1.Role)
		return isRole && o.GetNamespace() == namespace
	})
}

// lease returns the Lease of the hub's writer, or that of the fence. The hub renews them, but may
// not create them.
func (r Request) lease(name string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: r.meta(name, v1alpha1.SystemNamespace)}
	lease.Labels[v1alpha1.LabelOrigin] = string(r.origin())
	return lease
}

// Traces returns the objects of a registration in the worker that are known by their names, in the
// order in which they are removed. The others are the Roles and their bindings, ServiceAccounts,
// token Secrets, the Lease and the namespaces.
func (r Request) Traces() []client.Object {
	return []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: r.meta(r.base(), "")},
		&rbacv1.ClusterRole{ObjectMeta: r.meta(r.base(), "")},
	}
}

// tokenSecret returns the Secret into which the worker's token controller puts a long-lived token.
func (r Request) tokenSecret() *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: r.meta(r.AccountName(), v1alpha1.SystemNamespace), Type: corev1.SecretTypeServiceAccountToken}
	secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: r.AccountName()}
	return secret
}

func (r Request) roleRef(kind string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: r.base()}
}

func (r Request) subjects() []rbacv1.Subject {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: r.AccountName()}}
	if r.FormerAccount != "" {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: r.FormerAccount})
	}
	return subjects
}
