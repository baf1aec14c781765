/** The audit log of a device: append-only, chained, signed. */
export type { AuditBinding, AuditBreak, AuditFault, AuditFile } from './chain.ts';
export type { AuditDetails, AuditEntry, AuditHead } from './entry.ts';
export { auditIam } from './iam.ts';
export type { AuditIdentity } from './journal.ts';
export { AuditLog, type AuditLogOptions, type AuditSubject, type FailedPassword } from './log.ts';
export { AUDIT_DIRECTORY, AUDIT_KEY_FILE, readAuditEntries, readAuditKey, verifyAuditLog } from './store.ts';
export type { AuditVerdict, VerifyOptions } from './verify.ts';
