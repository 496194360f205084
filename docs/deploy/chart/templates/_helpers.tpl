{{- define "toolbelt.labels" -}}
app.kubernetes.io/name: toolbelt
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolbelt.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "toolbelt.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "toolbelt.container" -}}
image: {{ include "toolbelt.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  - name: ALLOWED_HOSTS
    value: {{ .Values.host | quote }}
  - name: FORWARDED_ALLOW_IPS
    value: {{ .Values.forwardedAllowIps | quote }}
  {{- range $name, $value := .Values.environment }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
envFrom:
  - secretRef:
      name: {{ .Values.existingSecret }}
volumeMounts:
  - name: temporary
    mountPath: /tmp
{{- end }}

{{- define "toolbelt.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  httpHeaders:
    - name: Host
      value: {{ .host | quote }}
{{- end }}
