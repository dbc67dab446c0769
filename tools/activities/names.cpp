/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls by name of functions that the linker chooses: functions of other files, and functions of this file whose
 * definition another definition may replace (a weak function, or a function of a shared library).
 *
 * The words in front of the chosen function say where its twin is, so a twin calls it by its address. For each name
 * there is a function that jumps to the address in a slot:
 *
 *   name.either:   lea   slot(%rip), %r11
 *                  jmp   *(%r11)
 *   slot:          .quad weft__activity_resolve, name
 *
 * At the first call weft__activity_resolve looks in front of `name`, and writes the address that it finds into the
 * slot. So the static linker, the dynamic linker and --wrap choose as they do for plain C, and each later call costs
 * these two instructions. (Rejected: a weak symbol name.yielding. The linker would choose it independently of `name`,
 * perhaps from another file.)
 */
#include "pass.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace weft
{
bool replaceable(const GlobalValue &V)
{
	return V.isInterposable() || !(V.hasLocalLinkage() || V.isDSOLocal() || alike(V));
}

/* Nothing may be between a function and the words in front of it, and no other data may take their place. */
bool hasWordsInFront(Function &F)
{
	const char *Between = F.getParent()->getModuleFlag("kcfi")  ? "-fsanitize=kcfi"
			      : F.hasMetadata(LLVMContext::MD_type) ? "-fsanitize=cfi"
			      : F.hasFnAttribute("patchable-function-prefix")
				  ? "-fpatchable-function-entry with a second number"
				  : nullptr;

	if (Between)
		error(F.getEntryBlock().front(),
		      Twine("activities cannot be compiled with ") + Between +
			  ": it needs the place in front of functions where twins are found");
	return !Between;
}

static GlobalVariable *slot(GlobalValue &V)
{
	Module &M = *V.getParent();
	Type *P = PointerType::get(M.getContext(), 0);
	FunctionCallee First = runtime(M, Resolve, Type::getVoidTy(M.getContext()), {});
	Constant *Words = ConstantStruct::getAnon({cast<Constant>(First.getCallee()), &V});
	auto *Slot = new GlobalVariable(M, Words->getType(), false, GlobalValue::InternalLinkage, Words,
					V.getName() + EitherSuffix + ".slot");

	Slot->setAlignment(Align(2 * M.getDataLayout().getTypeAllocSize(P)));
	return Slot;
}

/* V's attributes that also hold for a call that may switch. */
static AttributeList attributes(GlobalValue &V, FunctionType *T)
{
	LLVMContext &C = V.getContext();
	auto *F = dyn_cast<Function>(&V);
	AttrBuilder OfFunction(C);
	std::vector<AttributeSet> OfParameters;

	OfFunction.addAttribute(Attribute::Naked).addAttribute(Attribute::NoInline).addAttribute(EitherAttribute);
	if (F && F->doesNotThrow())
		OfFunction.addAttribute(Attribute::NoUnwind);
	if (!F || F->getFunctionType() != T)
		return AttributeList::get(C, AttributeSet::get(C, OfFunction), {}, {});
	for (unsigned I = 0; I < F->arg_size(); I++)
		OfParameters.push_back(F->getAttributes().getParamAttrs(I));
	return AttributeList::get(C, AttributeSet::get(C, OfFunction), F->getAttributes().getRetAttrs(), OfParameters);
}

Function *either(GlobalValue &V, FunctionType *T)
{
	Module &M = *V.getParent();
	LLVMContext &C = M.getContext();
	std::string Name = (V.getName() + EitherSuffix).str();

	if (Function *F = M.getFunction(Name))
		return F;
	auto *F = Function::Create(T, GlobalValue::InternalLinkage, Name, &M);
	GlobalVariable *Slot = slot(V);
	F->setAttributes(attributes(V, T));
	/* The linker chooses the same definition for all objects that do not define the name. */
	if (V.isDeclarationForLinker()) {
		F->setLinkage(GlobalValue::LinkOnceODRLinkage);
		F->setVisibility(GlobalValue::HiddenVisibility);
		F->setComdat(M.getOrInsertComdat(Name));
		Slot->setComdat(F->getComdat());
	}
	F->setDSOLocal(true);
	IRBuilder<> IR(BasicBlock::Create(C, "", F));
	auto *Type = FunctionType::get(IR.getVoidTy(), {IR.getPtrTy()}, false);
	IR.CreateCall(InlineAsm::get(Type, "leaq ${0:c}(%rip), %r11\n\tjmpq *(%r11)", "i", true), {Slot});
	IR.CreateUnreachable();
	return F;
}

GlobalValue *chosenBy(const Function &Either)
{
	if (!Either.hasFnAttribute(EitherAttribute) || Either.isDeclaration())
		return nullptr;
	auto *Jump = dyn_cast<CallBase>(&Either.getEntryBlock().front());
	auto *Slot = Jump && Jump->arg_size() ? dyn_cast<GlobalVariable>(Jump->getArgOperand(0)) : nullptr;
	return Slot && Slot->hasInitializer() ? dyn_cast<GlobalValue>(Slot->getInitializer()->getAggregateElement(1))
					      : nullptr;
}

bool mayPointToIFuncs(Module &M)
{
	return none_of(ArrayRef<StringRef>{"ThinLTO", "EnableSplitLTOUnit", "UnifiedLTO"},
		       [&](StringRef Flag) { return M.getModuleFlag(Flag); });
}

void announceIFuncs(Module &M)
{
	LLVMContext &C = M.getContext();
	Type *P = PointerType::get(C, 0), *Void = Type::getVoidTy(C);

	if (M.ifunc_empty() || !mayPointToIFuncs(M))
		return;
	auto *F = Function::Create(FunctionType::get(Void, false), GlobalValue::InternalLinkage, "weft.ifuncs", &M);
	IRBuilder<> IR(BasicBlock::Create(C, "", F));
	for (GlobalIFunc &I : M.ifuncs()) {
		Constant *Words = ConstantStruct::getAnon({Constant::getNullValue(P), &I, I.getResolver()});
		auto *Entry = new GlobalVariable(M, Words->getType(), false, GlobalValue::InternalLinkage, Words,
						 I.getName() + ".ifunc.words");
		IR.CreateCall(runtime(M, IFunc, Void, {P}), {Entry});
	}
	IR.CreateRetVoid();
	appendToGlobalCtors(M, F, 65535);
}

/*
 * In position-independent code another definition may replace a function that other objects can see. The optimizer
 * assumes that its own definition runs, and inlines it; the remaining calls go to the definition that the linker
 * chooses. The same holds for twins.
 */
PreservedAnalyses Choose::run(Module &M, ModuleAnalysisManager &)
{
	bool Changed = false;

	for (Function &T : make_early_inc_range(M)) {
		StringRef Name = T.getName();
		bool IsTwin = T.hasFnAttribute(TwinAttribute) && Name.consume_back(Suffix);
		Function *F = IsTwin ? M.getFunction(Name) : nullptr;

		if (!F || !replaceable(*F))
			continue;
		for (User *U : make_early_inc_range(T.users()))
			if (auto *Call = dyn_cast<CallBase>(U); Call && Call->getCalledOperand() == &T) {
				Call->setCalledOperand(either(*F, Call->getFunctionType()));
				Changed = true;
			}
	}
	return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
} // namespace weft
