{{- /*
The objects of a file in files/admission, as kustomize has them but for what the values say. Takes: root, file.
The files name the namespace jobferry-system, its ServiceAccount jobferry-manager, and the Service jobferry-webhook.
Jobs of namespace jobferry-system are never dispatched, wherever the manager is: in the workers it's Jobferry's.
*/ -}}
{{- define "jobferry.admission" -}}
{{- $root := .root }}{{ $values := .root.Values.admission }}
{{- $manager := printf "system:serviceaccount:%s:%s" $root.Release.Namespace (include "jobferry.serviceAccountName" $root) }}
{{- $users := list }}
{{- range prepend $values.exemptUsers $manager }}
{{- $users = append $users (printf "'%s'" .) }}
{{- end }}
{{- $text := .root.Files.Get (printf "files/admission/%s.yaml" .file) | replace "'system:serviceaccount:jobferry-system:jobferry-manager'" (join ", " $users) }}
{{- $text = replace "\"system:serviceaccount:jobferry-system:jobferry-manager\"" (printf "%q" $manager) $text }}
{{- $text = replace "['CronJob.batch', 'JobSet.jobset.x-k8s.io', 'ScaledJob.keda.sh']" (printf "['%s']" (concat (list "CronJob.batch") $root.Values.dispatch.groups $root.Values.dispatch.owners | uniq | join "', '")) $text }}
{{- $text = replace "['JobSet.jobset.x-k8s.io']" (printf "['%s']" ($root.Values.dispatch.groups | join "', '")) $text }}
{{- $text = replace "['jobferry-system']" (printf "['%s']" (list "jobferry-system" $root.Release.Namespace | uniq | join "', '")) $text }}
{{- range regexSplit "(?m)^---$" $text -1 }}
{{- $object := fromYaml . }}
{{- $_ := set $object.metadata "labels" (include "jobferry.labels" $root | fromYaml) }}
{{- if eq $object.metadata.name "jobferry-dispatch" }}
{{- include "jobferry.admissionDispatch" (dict "root" $root "object" $object) }}
{{- end }}
{{- range dig "spec" "variables" list $object }}
{{- if eq .name "everyNamespace" }}
{{- $_ := set . "expression" (toString $root.Values.dispatch.allNamespaces) }}
{{- end }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end -}}

{{- /* What the values say of how Jobs are claimed. Takes: root, object, which is changed. */ -}}
{{- define "jobferry.admissionDispatch" -}}
{{- $root := .root }}{{ $values := .root.Values.admission }}
{{- if eq .object.kind "MutatingAdmissionPolicy" }}
{{- $_ := set .object.spec "failurePolicy" $values.failurePolicy }}
{{- end }}
{{- if eq .object.kind "MutatingWebhookConfiguration" }}
{{- with $values.webhookAnnotations }}
{{- $_ := set $.object.metadata "annotations" . }}
{{- end }}
{{- range .object.webhooks }}
{{- if eq .name "dispatch.jobferry.dev" }}
{{- $_ := set . "failurePolicy" $values.failurePolicy }}
{{- end }}
{{- $_ := set .clientConfig.service "namespace" $root.Release.Namespace }}
{{- $_ := set .clientConfig.service "name" (printf "%s-webhook" (include "jobferry.fullname" $root)) }}
{{- end }}
{{- end }}
{{- end -}}
